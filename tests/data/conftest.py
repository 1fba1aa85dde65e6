import pytest


@pytest.fixture
def write(tmp_path):
    def write(text, name="some.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return path

    return write
