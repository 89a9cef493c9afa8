// Scenes, in the order of a lecture: each is a link with a paragraph beside the live picture.

export const SCENES = [
  { id: "task", title: "The task", hash: "", text: ["…"] },
];

export async function sceneHash(scene) {
  return [scene.hash, `scene=${scene.id}`, "play=1"].filter(Boolean).join("&");
}
