"""Level stream: trials come one by one, each is predicted and then used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from math import log
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from autotransfer.adaptation.fitted import Fitted
from autotransfer.adaptation.guard import Guard
from autotransfer.adaptation.shares import divergence, entropy, expected_shares
from autotransfer.adaptation.statistics import PRIOR, batch_norms, moments, written_out
from autotransfer.data.normalise import Normaliser
from autotransfer.data.trials import Array
from autotransfer.encoder.network import Network
from autotransfer.errors import SettingError

Moments = list[tuple[Tensor, Tensor]]
Encode = Callable[[Tensor], tuple[Tensor, Moments]]
"""Signals to latents, and mean and mean square of what reached each norm."""

HORIZON = 512
"""Trials that count: older ones are forgotten, so that statistics follow a slow drift."""

MEMORY, FRESH, EVERY, RATE = 32, 8, 4, 3e-4
"""Trials that are remembered; of them, those that a step of information maximisation looks at;
trials between such steps; their learning rate. With 1e-3, second halves of recordings had 0.748
(SSVEP), 0.935 (Myo EMG), 0.731 (CIIL EMG) and 0.283 (3DC EMG), with 3e-4 0.788, 0.951, 0.750 and
0.339: one seed, 5 to 12 people each."""

AGAIN = 128
"""Trials after which it is asked anew whether enough classes are there, once they were."""

FIRST = 16
"""Trials before the first such step."""

PATIENCE = 16
"""Trials over which a rise of the entropy is looked for."""

RISE = 0.5
"""Rise of the mean entropy, as a share of its largest value, after which all is begun anew."""


class Stream:
    """A network that goes along with one person, trial by trial.

    For each trial, in this order: it is predicted; the statistics of every batch norm, and those
    of a normaliser that goes by person, move to include it, as if the statistics of training
    counted for `prior` trials; every `EVERY` trials one step of information maximisation is made on
    `FRESH` of the last `MEMORY` trials. Both wait until the trials seem to be of enough classes
    (`autotransfer.adaptation.guard`). Nothing looks ahead. When predictions become much less
    certain than they were (somebody else, or the electrodes have moved), it begins anew with the
    trained network.

    Parameters
    ----------
    fitted : Fitted
        Trained; not changed.
    prior : int
        Trials that the statistics of training count for.
    guard : Guard, optional
        Says whether trials so far are of enough classes.

    Attributes
    ----------
    n_trials : int
        Trials seen since the last beginning.
    n_resets : int
        How often it began anew by itself.
    """

    def __init__(self, fitted: Fitted, prior: int = PRIOR, guard: Guard | None = None) -> None:
        self.origin, self.prior = fitted, prior
        self.guard = guard or Guard()
        self.n_resets = 0
        self.reset()

    def reset(self) -> None:
        """Begin anew with the trained network."""
        self.n_trials = 0
        network = deepcopy(self.origin.network).eval()
        network.head.requires_grad_(False)
        self.fitted = self.origin.with_network(network)
        self._own = self.origin.normaliser  # with the person's statistics so far, if it has any
        # An encoder that can tell what reaches its norms does so faster than hooks.
        observe: Encode | None = getattr(network.encoder, "observe", None)
        if observe is None or not network.head.weight.is_cpu:
            layers = _sharing(network.encoder, written_out(network))
            self._norms = batch_norms(layers)
            observe = self._watched(layers)
        else:
            self._norms = batch_norms(network.encoder)
        self._encode = observe
        # Means and mean squares: those add up over trials, variances do not.
        self._sums = [_sums(norm) for norm in self._norms]
        self._memory: list[Tensor] = []
        self._told: list[Tensor] = []  # probabilities of the same trials, when they were predicted
        self._entropies: list[float] = []
        self._enough = False
        self._least = float("inf")
        weights = [one for one in network.encoder.parameters() if one.requires_grad]
        self._optimiser = torch.optim.Adam(weights, lr=RATE, fused=True)  # nobody waits for it

    def _watched(self, layers: nn.Module) -> Encode:
        """Encode by layers, with hooks that see what reaches the norms."""
        seen: Moments = []

        def see(norm: _BatchNorm, inputs: tuple[Tensor, ...]) -> None:
            if not torch.is_grad_enabled():  # a prediction, and not a step
                mean, var = moments(*inputs)
                seen.append((mean, var + mean.square()))

        for norm in self._norms:
            norm.register_forward_pre_hook(see)

        def encode(x: Tensor) -> tuple[Tensor, Moments]:
            seen.clear()
            return layers(x).flatten(1), seen

        return encode

    def predict(self, trial: Array) -> Array:
        """Predict one trial (C, T), then use it: probabilities (n_classes,), in float64."""
        x = self.fitted.signals(trial[None])
        with torch.no_grad():
            latent, seen = self._encode(x)
            logits = self.fitted.network.head(latent)
        if not torch.isfinite(logits).all():
            raise SettingError(
                "The network has no finite answer for this trial: its values are not finite or too "
                "large. Check the unit of the signals. The trial was not used."
            )
        probabilities = logits.double().softmax(1)[0]
        self._use(trial, x, probabilities, seen)
        answer: Array = probabilities.cpu().numpy()
        return answer

    def _use(self, trial: Array, x: Tensor, probabilities: Tensor, seen: Moments) -> None:
        self.n_trials += 1
        share = 1 / min(self.prior + self.n_trials, max(HORIZON, self.prior + 1))
        for sums, news in zip(self._sums, seen, strict=True):
            for total, new in zip(sums, news, strict=True):
                total.lerp_(new.double(), share)
        self._own = self._own.adapted(trial[None], share)
        self._memory = [*self._memory, x][-MEMORY:]
        self._told = [*self._told, probabilities][-HORIZON:]
        if self._lost(float(entropy(probabilities))):
            self.n_resets += 1
            self.reset()
        elif self._guarded():
            self.fitted = self.fitted.with_normaliser(self._own)
            for norm, sums in zip(self._norms, self._sums, strict=True):
                _set(norm, sums)
            if self.n_trials >= FIRST and self.n_trials % EVERY == 0:
                self._step()

    def _guarded(self) -> bool:
        """Whether trials so far seem to be of enough classes; asked now and then, for speed."""
        if self.n_trials % (AGAIN if self._enough else EVERY) == 0:
            self._enough = self.guard.passes(torch.stack(self._told))
        return self._enough

    def _lost(self, value: float) -> bool:
        """Whether predictions have become much less certain than they were."""
        self._entropies = [*self._entropies, value][-PATIENCE:]
        if len(self._entropies) < PATIENCE:
            return False
        now = sum(self._entropies) / PATIENCE
        self._least = min(self._least, now)
        return now > self._least + RISE * log(self.fitted.network.head.out_features)

    def _step(self) -> None:
        """Make one step of information maximisation on some of the trials remembered.

        On few of them, so that nobody waits long; of the others it is remembered what was
        predicted, for the spread over classes.
        """
        told = torch.stack(self._told)
        n = len(self._memory)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(self.n_trials))
        fresh, others = order[:FRESH].tolist(), order[FRESH:]
        signals = torch.cat([self._memory[i] for i in fresh])
        probabilities = self.fitted.network(signals)[1].softmax(1)
        mean = (probabilities.sum(0) + told[-n:][others].float().sum(0)) / n
        spread = divergence(mean, expected_shares(told, steps=10))
        loss = entropy(probabilities).mean() + spread * n / len(fresh)
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()

    def state(self) -> dict[str, Tensor]:
        """Give all that it goes on from, by name; the last trials are among it."""
        weights = self.fitted.network.state_dict()
        state = {f"network.{name}": value.clone() for name, value in weights.items()}
        origin = self.origin.network.state_dict()
        state |= {f"origin.{name}": value.clone() for name, value in origin.items()}
        counts = [self.n_trials, self.n_resets, self.prior, int(self._enough)]
        state["counts"] = torch.tensor(counts, dtype=torch.int64)
        state["entropies"] = torch.tensor([self._least, *self._entropies], dtype=torch.float64)
        state["told"] = torch.stack(self._told) if self._told else torch.zeros(0)
        state["memory"] = torch.cat(self._memory) if self._memory else torch.zeros(0)
        for name, one in (("now", self._own), ("origin", self.origin.normaliser)):
            if one.covariance is not None:
                state[f"covariance.{name}"] = torch.from_numpy(one.covariance)
        for number, (mean, square) in enumerate(self._sums):
            state[f"sums.{number}"] = torch.stack([mean, square])
        for number, moment in self._optimiser.state_dict()["state"].items():
            state |= {f"optimiser.{number}.{name}": value for name, value in moment.items()}
        return state

    def snapshot(self) -> Network:
        """Copy the network as it is now."""
        network = deepcopy(self.origin.network)
        network.load_state_dict(self.fitted.network.state_dict())
        return network.eval()

    @classmethod
    def resumed(
        cls, fitted: Fitted, state: Mapping[str, Tensor], guard: Guard | None = None
    ) -> Stream:
        """Go on from what `state` gave.

        Parameters
        ----------
        fitted : Fitted
            A network of the same shape.
        state : mapping
            Numbers by name; those that begin with "origin." are the weights it began with.
        guard : Guard, optional
            As for a new one.
        """
        try:
            origin = deepcopy(fitted.network)
            origin.load_state_dict(_part(state, "origin."))
            begun = fitted.with_network(origin)
            if fitted.normaliser.by_person:
                begun = begun.with_normaliser(_read(fitted.normaliser, state["covariance.origin"]))
            stream = cls(begun, guard=guard)
            stream._restore(state)
        except (KeyError, ValueError, RuntimeError, TypeError, IndexError) as error:
            raise SettingError(
                f"The saved stream does not fit this model ({type(error).__name__}). Save it "
                "again, or begin a new one."
            ) from error
        return stream

    def _restore(self, state: Mapping[str, Tensor]) -> None:
        self.fitted.network.load_state_dict(_part(state, "network."))
        self.n_trials, self.n_resets, self.prior, enough = (int(n) for n in state["counts"])
        self._enough = bool(enough)
        self._least, *self._entropies = state["entropies"].tolist()
        if self._own.by_person:
            self._own = _read(self._own, state["covariance.now"])
            if self._enough:
                self.fitted = self.fitted.with_normaliser(self._own)
        self._told = list(state["told"]) if state["told"].numel() else []
        self._memory = [one[None] for one in state["memory"]] if state["memory"].numel() else []
        pairs = [state[f"sums.{i}"].clone() for i in range(len(self._norms))]
        self._sums = [(mean, square) for mean, square in pairs]
        of_weight: dict[int, dict[str, Tensor]] = {}
        for name, value in _part(state, "optimiser.").items():
            number, what = name.split(".")
            of_weight.setdefault(int(number), {})[what] = value.clone()
        document: dict[str, Any] = self._optimiser.state_dict()
        self._optimiser.load_state_dict({**document, "state": of_weight})


def _part(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def _read(normaliser: Normaliser, covariance: Tensor) -> Normaliser:
    """Give a normaliser a covariance that was saved, which may be damaged."""
    return Normaliser.from_state({**normaliser.state(), "covariance": covariance.tolist()})


def _sharing(encoder: nn.Module, layers: nn.Module) -> nn.Module:
    """Let layers that were written out have the encoder's own weights and statistics."""
    if layers is not encoder:
        for name, own in encoder.named_children():
            setattr(layers, name, own)
    return layers


def _sums(norm: _BatchNorm) -> tuple[Tensor, Tensor]:
    mean, var = norm.running_mean, norm.running_var
    assert mean is not None
    assert var is not None
    return mean.double(), var.double() + mean.double().square()


def _set(norm: _BatchNorm, sums: tuple[Tensor, Tensor]) -> None:
    mean, square = sums
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.running_mean.copy_(mean)
    norm.running_var.copy_((square - mean.square()).clamp_min(0.0))
