"""Go programs that tests build. Their common packages (the runtime and the standard library, once for each kind of build) are compiled once for all
tests and cached in the build folder."""
import os

from flamewire import ROOT


def environment(folder):
    """An environment without the user's settings, modules and network access. `folder` contains nothing of the user."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GO")}
    return own | {"GO111MODULE": "off", "GOCACHE": str(ROOT / "build" / "go-cache"), "GOPATH": str(folder / "path"), "GOFLAGS": ""}
