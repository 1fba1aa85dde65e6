"""Shape checks on, and settings every test shares."""

import psutil
import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# shapes in annotations are checked at run time in every test
install_import_hook(["causalformer.model", "causalformer.explain"], "beartype.beartype")

torch.set_num_threads(1)  # everything is small: a second thread only costs

settings.register_profile(
    "causalformer",
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],  # it measures how busy the machine is
)
settings.load_profile("causalformer")


@pytest.fixture(scope="session", autouse=True)
def enough_memory():
    """Let 8 GB be free, whatever else runs on the machine: plans depend on it."""
    measured = psutil.virtual_memory
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            psutil, "virtual_memory", lambda: measured()._replace(available=8_000_000_000)
        )
        yield


@pytest.fixture
def double():
    """Compute in float64 while a test runs."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
