// One step of training on a GPU, in the order of its kernels. ``step.py`` beside this file launches them.
#ifndef SHARED_POOL
#define SHARED_POOL(name) extern __shared__ __align__(16) unsigned char name[]
#endif
#include "batch.cu"
#include "mass.cu"
#include "scores.cu"
#include "gradient.cu"
#include "update.cu"
#include "measure.cu"
