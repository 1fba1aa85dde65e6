"""Shape checks on, and settings every test shares."""

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

# shapes in annotations are checked at run time in every test
install_import_hook(["causalformer.model", "causalformer.explain"], "beartype.beartype")

torch.set_num_threads(1)  # everything is small: a second thread only costs

settings.register_profile("causalformer", deadline=None, max_examples=25)
settings.load_profile("causalformer")


@pytest.fixture
def double():
    """Compute in float64 while a test runs."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
