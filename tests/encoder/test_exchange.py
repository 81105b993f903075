"""State dicts in braindecode's form. tests/exchange judges them by braindecode itself."""

import pytest
import torch
from torch import nn

from autotransfer.encoder import EEGNet, from_braindecode, to_braindecode
from autotransfer.errors import SettingError

WEIGHT = "final_layer.conv_classifier.weight"
LINEAR = "final_layer.linearconstraint.parametrizations.weight.original"


@pytest.fixture
def states():
    torch.manual_seed(0)
    net = EEGNet(4, 128, F1=2, F2=3)
    return net.state_dict(), nn.Linear(net.n_latent, 5).state_dict()


@pytest.mark.parametrize("norm_rate", [None, 100.0])
def test_there_and_back(states, norm_rate):
    there = to_braindecode(*states, norm_rate=norm_rate)
    assert (WEIGHT in there) == (norm_rate is None)
    back = from_braindecode(there, norm_rate or 0.25)
    for found, wanted in zip(back, states, strict=True):
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[name], t) for name, t in wanted.items())


def test_final_layer_is_the_linear_one(states):
    there = to_braindecode(*states)
    z = torch.randn(7, 12)
    wanted = nn.functional.linear(z, states[1]["weight"], states[1]["bias"])
    conv = nn.functional.conv2d(
        z.view(7, 3, 1, 4), there[WEIGHT], there["final_layer.conv_classifier.bias"]
    )
    torch.testing.assert_close(conv.flatten(1), wanted)


def test_results_share_no_memory(states):
    there = to_braindecode(*states)
    for tensor in there.values():
        tensor.zero_()
    assert states[0]["conv_temporal.weight"].abs().max() > 0
    assert states[1]["weight"].abs().max() > 0


def test_the_constraint_is_applied(states):
    there = to_braindecode(*states, norm_rate=100.0)
    _, head = from_braindecode(there, norm_rate=0.1)
    torch.testing.assert_close(head["weight"].norm(dim=1), torch.full((5,), 0.1))
    with pytest.raises(SettingError, match="larger norm_rate"):
        to_braindecode(*states, norm_rate=0.1)


def test_missing_and_foreign_names(states):
    there = to_braindecode(*states)
    with pytest.raises(SettingError, match=r"lacks bnorm_1.weight"):
        from_braindecode({k: v for k, v in there.items() if k != "bnorm_1.weight"})
    with pytest.raises(SettingError, match=r"lacks final_layer.conv_classifier.bias"):
        from_braindecode({k: v for k, v in there.items() if "classifier.bias" not in k})
    with pytest.raises(SettingError, match=r"no counterpart: critic.weight"):
        from_braindecode({**there, "critic.weight": torch.zeros(1)})
    with pytest.raises(SettingError, match=r"encoder: it lacks conv_temporal.weight"):
        to_braindecode(states[1], states[1])
    with pytest.raises(SettingError, match="linear classifier: it lacks bias"):
        to_braindecode(states[0], {"weight": states[1]["weight"]})


def test_a_classifier_of_another_encoder(states):
    with pytest.raises(SettingError, match=r"F2 = 3. Is it the classifier of this encoder"):
        to_braindecode(states[0], nn.Linear(16, 2).state_dict())
    there = to_braindecode(*states)
    with pytest.raises(SettingError, match=r"expected \(n_classes, F2, 1, n_time\)"):
        from_braindecode({**there, WEIGHT: torch.zeros(5, 3, 2, 4)})
