"""``scb lab`` shows the paper's experiment in the browser."""

import webbrowser
from pathlib import Path

from scb.cli.terminal import terminal
from scb.inputs import one_of


def lab(out: Path | None = None, scene: str | None = None, overwrite: bool = False) -> None:
    """Open the lab, or write it to a file. The lab is one page that trains the paper's model in the
    browser, without a server or a network.

    - Write a copy to send or to serve: scb lab --out lab.html

    - Begin with a scene: scb lab --scene mirror

    Args:
        out: File to write the page to, instead of opening it.
        scene: Scene to begin with: task, plateau, mirror, noise, lambda, projector, transfer,
            heads, softmax, lost or text.
        overwrite: Replace a file even if it is not a copy of the lab.
    """
    from scb.files import prepare_file
    from scb.lab import scenes, write_page

    if scene is not None:
        one_of("scene", scene, scenes())
    console = terminal(soft_wrap=True)
    if out is not None:
        prepare_file(out, "<title>scb lab: ", overwrite)
        console.print(f"wrote {write_page(out)}")
        return
    address = write_page().as_uri() + (f"#scene={scene}" if scene else "")
    if webbrowser.open(address):
        console.print(f"opened {address}")
    else:
        console.print(f"no browser was found; open this address in one:\n{address}")
