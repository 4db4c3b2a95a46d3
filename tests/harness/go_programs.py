"""Go programs that tests build. What they have in common (the runtime and the standard library, once for each kind of build) is compiled once
for all tests and kept in the build folder."""
import os

from flamewire import ROOT


def environment(folder):
    """Without the user's own settings, modules and network; `folder` is where nothing of the user is."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GO")}
    return own | {"GO111MODULE": "off", "GOCACHE": str(ROOT / "build" / "go-cache"), "GOPATH": str(folder / "path"), "GOFLAGS": ""}
