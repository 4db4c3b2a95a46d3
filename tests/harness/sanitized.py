"""Programs built with sanitizers (`./dev sanitize`) cannot run all tests: they are not static, need far more memory, and do not work with another
library between them and libc."""
import pytest
from flamewire import SANITIZED


def plain_build_only(reason):
    return pytest.mark.skipif(bool(SANITIZED), reason=f"NOT tested with sanitizers: {reason}")
