"""What accelerators need, as far as a machine without one can tell."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest
import torch

from causalformer import CausalFormer
from causalformer.detect import calibrated
from causalformer.devices import choose_device, has_float64
from causalformer.errors import SettingsError
from causalformer.model.channel_loss import masked_source_loss
from causalformer.model.channels import ChannelNetwork, side_by_side

SOURCES = torch.tensor([[0, 2], [1, 0], [2, 1]])


def networks():
    yield ChannelNetwork(2, 3, 2, 4)
    yield side_by_side([ChannelNetwork(2, 3, 2, 4, sources=SOURCES[i : i + 1]) for i in range(3)])


@pytest.mark.parametrize("network", list(networks()), ids=["all causes", "candidates"])
def test_a_step_stays_on_the_device_of_its_data(network):
    """The device "meta" computes nothing, but refuses to mix with tensors of another one."""
    network = network.to("meta")
    past, now = torch.zeros(5, 3, 2, device="meta"), torch.zeros(5, 3, device="meta")
    learns = torch.ones(5, 2, 1, device="meta")
    removed = torch.zeros(5, network.n_causes, device="meta")
    weight = torch.ones(2, device="meta")
    masked_source_loss(network, past, now, learns, removed, 0.1, weight).backward()
    assert network.kernel.grad.device.type == "meta"
    assert network.channels_of_fold(past, 1).device.type == "meta"
    assert network.straight(past).device.type == "meta"


def test_without_double_precision_the_tests_move_to_the_cpu(monkeypatch):
    x = np.random.default_rng(0).standard_normal((120, 3))
    x[1:, 1] += x[:-1, 0]
    options = {"max_lag": 2, "device": "cpu", "settings": {"max_epochs": 2, "n_channels": 4}}
    usual = CausalFormer(**options).fit(x)
    moved = []
    monkeypatch.setattr(calibrated, "has_float64", lambda device: bool(moved.append(device)))
    again = CausalFormer(**options).fit(x)
    assert moved
    assert again.graph_.edges == usual.graph_.edges
    assert again.model_ is not None


def test_only_apples_devices_lack_double_precision():
    assert [has_float64(torch.device(name)) for name in ("cpu", "cuda", "mps")] == [1, 1, 0]


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(SettingsError, match="device 'cuda:77' cannot be used here"):
        choose_device("cuda:77")
    assert choose_device("auto").type in ("cpu", "cuda", "mps")


def refusal(name):
    with pytest.raises(SettingsError) as caught:
        choose_device(name)
    return str(caught.value)


@pytest.mark.parametrize("name", [None, 1.5, 1, True, [], "meta", "", "abacus", "cuda:x", "\ud800"])
def test_what_is_no_device_is_refused_by_name(name):
    message = refusal(name)
    assert message.startswith(("device ", "there is no device "))
    assert repr(name) in message


@pytest.fixture
def without_accelerator(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)

    def fail(*_, device):
        table = " and a table of all backends" * 100
        raise NotImplementedError(f"Could not run it on {device}. Much advice.\nCPU: {table}")

    monkeypatch.setattr(torch, "zeros", fail)


@pytest.mark.usefixtures("without_accelerator")
@pytest.mark.parametrize("name", ["cuda", "cuda:1", "mps"])
def test_the_refusal_of_a_device_is_short_and_names_only_what_is_there(name):
    assert refusal(name) == (
        f"device {name!r} cannot be used here (Could not run it on {name}); "
        "choose 'auto' or 'cpu' as `device`"
    )


def test_a_long_reason_is_cut_off(monkeypatch):
    def fail(*_, device):
        raise AssertionError(f"no {device} " * 100)

    monkeypatch.setattr(torch, "zeros", fail)
    assert len(refusal("cpu")) < 250


def test_a_broken_accelerator_is_not_suggested_again(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)

    def fail(*_, device):
        raise RuntimeError("no kernel image")

    monkeypatch.setattr(torch, "zeros", fail)
    assert refusal("cuda").endswith("choose 'auto' or 'mps' or 'cpu' as `device`")
    assert choose_device("auto") == torch.device("cuda")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="concerns glibc")
def test_steps_take_no_new_pages_from_the_system():
    """Memory of a step is that of the step before; in a new process, as the setting stays."""
    code = """
import resource, torch
from causalformer.devices import fast_small_steps
from causalformer.model.channel_loss import masked_source_loss
from causalformer.model.channels import ChannelNetwork
network = ChannelNetwork(4, 25, 5, 64, sources=torch.arange(10).expand(25, -1))
past, now, learns = torch.ones(249, 25, 5), torch.ones(249, 25), torch.ones(249, 4, 1)
with fast_small_steps(torch.device("cpu"), 25):
    for step in range(40):
        if step == 20:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        network.zero_grad()
        removed = torch.zeros(249, 10)
        masked_source_loss(network, past, now, learns, removed, 0.1, past[0, 0]).backward()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert int(done.stdout) < 20 * 300  # else thousands in every step
