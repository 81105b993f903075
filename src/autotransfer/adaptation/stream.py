"""Level stream: trials come one by one, each is predicted and then used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from math import log

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.information import LEAST_TRIALS
from autotransfer.adaptation.registry import NONE, Policy, adapt, fitting
from autotransfer.adaptation.shares import entropy
from autotransfer.adaptation.statistics import PRIOR, batch_norms, moments
from autotransfer.data.normalise import Normaliser
from autotransfer.data.trials import Array
from autotransfer.encoder.beside import written_out
from autotransfer.encoder.network import Network
from autotransfer.errors import SettingError

Moments = list[tuple[Tensor, Tensor]]
Encode = Callable[[Tensor], tuple[Tensor, Moments]]
"""Signals to latents, and mean and mean square of what reached each norm."""

HORIZON = 512
"""Trials that count: older ones are forgotten, so that statistics follow a slow drift."""

MEMORY, SELDOM, DELAY = 128, 256, 8
"""Trials that are remembered; trials after which the network is made anew at the latest; trials
later from which that network is used, so that nobody waits while it is made. With a small step of
information maximisation after every fourth trial instead, second halves had 0.932 (Myo EMG, 12
people), 0.769 (CIIL EMG, 6) and 0.739 (Myo disco EMG, 3); so, 0.938, 0.842 and 0.772: one seed."""

ASK, AGAIN = 4, 128
"""Trials after which it is asked anew whether enough classes are there: until they are, and then.
Asking at every trial would take longer than predicting it."""

PATIENCE = 16
"""Trials over which a rise of the entropy is looked for."""

RISE = 0.5
"""Rise of the mean entropy, as a share of its largest value, after which all is begun anew."""


def due(n_trials: int) -> bool:
    """Whether the network is made anew after so many trials.

    Examples
    --------
    >>> [n for n in range(1, 800) if due(n)]
    [32, 64, 128, 256, 512, 768]
    """
    if n_trials > SELDOM:
        return n_trials % SELDOM == 0
    return n_trials >= LEAST_TRIALS and n_trials.bit_count() == 1


class Stream:
    """A network that goes along with one person, trial by trial.

    For each trial, in this order: it is predicted; the statistics of every batch norm, and those
    of a normaliser that goes by person, move to include it, as if the statistics of training
    counted for `prior` trials. After 32, 64, 128 and 256 trials, and then after every 256, the
    trained network is adapted to the last `MEMORY` trials as to a recording, in a thread; `DELAY`
    trials later it takes the place of the one before. Both wait until the trials seem to be of
    enough classes (`autotransfer.adaptation.guard`). Nothing looks ahead, and which trial is
    predicted by which network does not hang on the time that anything takes. When predictions
    become much less certain than they were (somebody else, or the electrodes have moved), it begins
    anew with the trained network.

    Parameters
    ----------
    fitted : Fitted
        Trained; not changed.
    prior : int
        Trials that the statistics of training count for.
    policy : Policy, optional
        Its `stream` says what may be done, and its guard whether trials so far are of enough
        classes. Statistics move only where they are among what may be done.

    Attributes
    ----------
    n_trials : int
        Trials seen since the last beginning.
    n_resets : int
        How often it began anew by itself.
    """

    def __init__(self, fitted: Fitted, prior: int = PRIOR, policy: Policy | None = None) -> None:
        self.origin, self.prior = fitted, prior
        self.policy = policy or Policy()
        self.n_resets = 0
        self.reset()

    def reset(self) -> None:
        """Begin anew with the trained network."""
        self.n_trials = 0
        network = deepcopy(self.origin.network).eval()
        self.fitted = self.origin.with_network(network)
        self._own = self.origin.normaliser  # with the person's statistics so far, if it has any
        # An encoder that can tell what reaches its norms does so faster than hooks.
        observe: Encode | None = getattr(network.encoder, "observe", None)
        if observe is None or not network.head.weight.is_cpu:
            layers = _sharing(network.encoder, written_out(network.encoder))
            self._norms = batch_norms(layers)
            observe = self._watched(layers)
        else:
            self._norms = batch_norms(network.encoder)
        self._encode = observe
        # Means and mean squares: those add up over trials, variances do not.
        self._sums = [_sums(norm) for norm in self._norms]
        self._memory: list[Array] = []
        self._told: list[Tensor] = []  # probabilities of trials, when they were predicted
        self._entropies: list[float] = []
        self._enough = False
        self._least = float("inf")
        self._coming: Future[Fitted | None] | None = None

    def _watched(self, layers: nn.Module) -> Encode:
        """Encode by layers, with hooks that see what reaches the norms."""
        seen: Moments = []

        def see(norm: _BatchNorm, inputs: tuple[Tensor, ...]) -> None:
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
        probabilities, seen = self.look(trial)
        self.use(trial, probabilities, seen)
        answer: Array = probabilities.cpu().numpy()
        return answer

    def look(self, trial: Array) -> tuple[Tensor, Moments]:
        """Predict one trial without using it; gives what `use` takes beside it."""
        x = self.fitted.signals(trial[None])
        with torch.no_grad():
            latent, seen = self._encode(x)
            logits = self.fitted.network.head(latent)
        if not torch.isfinite(logits).all():
            raise SettingError(
                "The network has no finite answer for this trial: its values are not finite or too "
                "large. Check the unit of the signals. The trial was not used."
            )
        return logits.double().softmax(1)[0], seen

    def use(self, trial: Array, probabilities: Tensor, seen: Moments) -> None:
        """Go along with a trial that was looked at last."""
        self.n_trials += 1
        share = 1 / min(self.prior + self.n_trials, max(HORIZON, self.prior + 1))
        for sums, news in zip(self._sums, seen, strict=True):
            for total, new in zip(sums, news, strict=True):
                total.lerp_(new.double(), share)
        self._own = self._own.adapted(trial[None], share)
        self._memory = [*self._memory, np.array(trial, np.float32)][-MEMORY - DELAY :]
        self._told = [*self._told, probabilities][-HORIZON:]
        if self._lost(float(entropy(probabilities))):
            self.n_resets += 1
            self.reset()
            return
        if self._guarded() and "statistics" in self.policy.stream.split("+"):
            self.fitted = self.fitted.with_normaliser(self._own)
            for norm, sums in zip(self._norms, self._sums, strict=True):
                _set(norm, sums)
        if due(self.n_trials):
            self._begin(self._memory)
        elif due(self.n_trials - DELAY):
            self._take()

    def _begin(self, trials: list[Array]) -> None:
        """Begin to adapt the trained network to the last of some trials, as to a recording."""
        if self.policy.stream == NONE:
            return
        person = Person(np.stack(trials[-MEMORY:]))
        thread = ThreadPoolExecutor(1, "autotransfer-stream")
        self._coming = thread.submit(self._adapted, person)
        thread.shutdown(wait=False)

    def _adapted(self, person: Person) -> Fitted | None:
        names = self.policy.stream.split("+")
        if not self._norms:
            names = [name for name in names if name != "statistics"]
        # Trials of few classes are waited out: what is done with a recording of them was never
        # scored in a stream.
        guard = replace(self.policy.guard, certainty=False)
        method = fitting(self.origin, person, "+".join(names) or NONE, guard)
        return None if method == NONE else adapt(self.origin, person, method, self.prior)

    def _take(self) -> None:
        """Go on with the network that was made meanwhile, if there is one."""
        made = None if self._coming is None else self._coming.result()
        self._coming = None
        if made is not None:
            self.fitted.network.load_state_dict(made.network.state_dict())
            self.fitted, self._own = self.fitted.with_normaliser(made.normaliser), made.normaliser
            self._sums = [_sums(norm) for norm in self._norms]

    def _guarded(self) -> bool:
        """Whether trials so far seem to be of enough classes; asked now and then, for speed."""
        if self.n_trials % (AGAIN if self._enough else ASK) == 0:
            self._enough = self.policy.guard.passes(torch.stack(self._told))
        return self._enough

    def _lost(self, value: float) -> bool:
        """Whether predictions have become much less certain than they were."""
        self._entropies = [*self._entropies, value][-PATIENCE:]
        if len(self._entropies) < PATIENCE:
            return False
        now = sum(self._entropies) / PATIENCE
        self._least = min(self._least, now)
        return now > self._least + RISE * log(self.fitted.network.head.out_features)

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
        trials = np.stack(self._memory) if self._memory else np.zeros(0, np.float32)
        state["trials"] = torch.from_numpy(trials)
        turns = [self.origin.normaliser.turn, self._own.turn]
        state["turns"] = torch.tensor(turns, dtype=torch.int64)
        for name, one in (("now", self._own), ("origin", self.origin.normaliser)):
            if one.covariance is not None:
                state[f"covariance.{name}"] = torch.from_numpy(one.covariance)
        for number, (mean, square) in enumerate(self._sums):
            state[f"sums.{number}"] = torch.stack([mean, square])
        return state

    def snapshot(self) -> Network:
        """Copy the network as it is now."""
        network = deepcopy(self.origin.network)
        network.load_state_dict(self.fitted.network.state_dict())
        return network.eval()

    @classmethod
    def resumed(
        cls, fitted: Fitted, state: Mapping[str, Tensor], policy: Policy | None = None
    ) -> Stream:
        """Go on from what `state` gave.

        Parameters
        ----------
        fitted : Fitted
            A network of the same shape.
        state : mapping
            Numbers by name; those that begin with "origin." are the weights it began with.
        policy : Policy, optional
            As for a new one.
        """
        try:
            origin = deepcopy(fitted.network)
            origin.load_state_dict(_part(state, "origin."))
            turns = dict(zip(("origin", "now"), state["turns"].tolist(), strict=True))
            saved = {
                name: _read(fitted.normaliser, turn, state.get(f"covariance.{name}"))
                for name, turn in turns.items()
            }
            begun = fitted.with_network(origin).with_normaliser(saved["origin"])
            stream = cls(begun, policy=policy)
            stream.fitted = stream.fitted.with_normaliser(fitted.normaliser)
            stream._own = saved["now"]
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
        self._told = list(state["told"]) if state["told"].numel() else []
        self._memory = list(state["trials"].numpy()) if state["trials"].numel() else []
        pairs = [state[f"sums.{i}"].clone() for i in range(len(self._norms))]
        self._sums = [(mean, square) for mean, square in pairs]
        for since in range(DELAY):  # what was being made when it was saved is made again
            if due(self.n_trials - since):
                self._begin(self._memory[: len(self._memory) - since])


def _part(state: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def _read(normaliser: Normaliser, turn: int, covariance: Tensor | None) -> Normaliser:
    """Give a normaliser a turn and a covariance that were saved, which may be damaged."""
    own = {"turn": turn} | ({} if covariance is None else {"covariance": covariance.tolist()})
    return Normaliser.from_state(normaliser.state() | own)


def _sharing(encoder: nn.Module, layers: nn.Module) -> nn.Module:
    """Let layers that were written out have the encoder's own weights and statistics."""
    if layers is not encoder:
        for name, own in encoder.named_children():
            part = getattr(layers, name)
            setattr(layers, name, _sharing(own, part) if hasattr(own, "literal") else own)
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
