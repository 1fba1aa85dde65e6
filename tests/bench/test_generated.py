from causalformer.bench.generated import systems
from causalformer.config import resolve_settings


def test_the_attention_suite_fits_the_same_systems_in_three_ways():
    suite = [system for system in systems(1) if system.suite == "attention"]
    assert len(suite) == 18
    for first in range(0, 18, 3):
        same = suite[first : first + 3]
        assert len({system.make for system in same}) == 1
        chosen = [resolve_settings("default", system.settings) for system in same]
        assert [(s.attention, s.temperature) for s in chosen] == [
            *((False, 1.0), (True, 1.0), (True, 10.0))
        ]
