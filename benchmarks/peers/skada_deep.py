"""skada's Deep CORAL, DANN and CDAN with our EEGNet as their module.

All three compare a source with a target and cannot be fitted without one: their batches are half
source, half target, and their losses compare the halves (`DomainBalancedSampler`,
`DomainAwareCriterion` of skada 0.6). The target is either the new person's unlabelled trials, or a
stand-in: one training subject, drawn by the seed, whose labels are then not used.

The domain classifier that skada makes by default has one output through a softmax, which is 1
whatever comes in: the adversary learns nothing and the encoder gets no gradient from it. Ours is
skada's with a sigmoid in that place, handed over as its `domain_classifier` option.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import skada.deep
import torch
from skada.deep.modules import DomainClassifier
from skorch.callbacks import Callback
from torch import Tensor, nn

from autotransfer.data.normalise import Normaliser
from autotransfer.encoder.network import Network
from autotransfer.encoder.registry import make_encoder
from autotransfer.training.loop import class_weights
from autotransfer.training.schedule import SCHEDULES
from benchmarks.peers.known import Array, Known, Model

BATCH = 64
"""Source trials in a batch, as in our loop; as many of the target are added to them."""


class Classifier(nn.Module):
    """Our network with the call that skada makes; its encoder's latents are what it compares."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.encoder, self.head = network.encoder, network.head

    def forward(self, X: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Logits (B, n_classes) of signals (B, C, T)."""
        logits: Tensor = self.head(self.encoder(X))
        return logits


class Stopping(Callback):  # type: ignore[misc]
    """The learning rates and the early stopping of our loop, for skorch.

    Parameters
    ----------
    X, y : Tensor
        Signals and class numbers of the validation subjects.
    weights : Tensor
        Weights of the classes.
    learning_rate, schedule, patience : float, str, int or None
        As for `CensoredClassifier`.
    """

    def __init__(
        self,
        X: Tensor,
        y: Tensor,
        weights: Tensor,
        learning_rate: float,
        schedule: str,
        patience: int | None,
    ) -> None:
        self.X, self.y, self.weights = X, y, weights
        self.learning_rate, self.patience = learning_rate, patience
        self.factor = SCHEDULES[schedule].factor

    def on_train_begin(self, net: Any, **_: Any) -> None:
        """Forget an earlier training."""
        self.best_loss, self.best_epoch = math.inf, 0
        self.best: dict[str, Tensor] = {}

    def on_epoch_begin(self, net: Any, **_: Any) -> None:
        """Set the learning rate of the epoch."""
        for group in net.optimizer_.param_groups:
            factor = self.factor(len(net.history), net.max_epochs)
            group["lr"] = self.learning_rate * factor

    def on_epoch_end(self, net: Any, **_: Any) -> None:
        """Keep the weights if the validation loss fell; stop where it has not for long."""
        module = net.module_.base_module_
        loss = nn.functional.cross_entropy(logits(module, self.X), self.y, weight=self.weights)
        epoch = len(net.history)
        if self.patience is None or float(loss) < self.best_loss:
            self.best_loss, self.best_epoch = float(loss), epoch
            self.best = {k: v.detach().clone() for k, v in module.state_dict().items()}
        if self.patience is not None and epoch - self.best_epoch >= self.patience:
            raise KeyboardInterrupt  # skorch's own way to end a training


def logits(module: nn.Module, X: Tensor) -> Tensor:
    """Logits of many trials in evaluation mode, a block at a time."""
    module.eval()
    with torch.no_grad():
        return torch.cat([module(block) for block in torch.split(X, 256)])


def domain_classifier(n_inputs: int) -> nn.Module:
    """Make skada's domain classifier, with a sigmoid where its softmax of one number stands."""
    made = DomainClassifier(num_features=n_inputs)
    made.classifier[-1] = nn.Sigmoid()
    found: nn.Module = made
    return found


def fit(known: Known, new: list[Array] | None, *, method: str, reg: float) -> Model:
    """Fit one of skada's methods.

    Parameters
    ----------
    known : Known
        Labelled trials.
    new : list of array, or None
        Unlabelled trials of each new person as the target; None takes one training subject.
    method : {"DeepCoral", "DANN", "CDAN"}
        Name in `skada.deep`.
    reg : float
        Weight of the domain loss.

    Returns
    -------
    Model
        Of single trials.
    """
    clf = known.classifier()
    train = known.train
    held = known.data.select(subjects=known.validation)
    normaliser = Normaliser(clf.normalise).fit(train.trials)
    if new is None:
        stand_in = np.random.default_rng(known.seed).choice(train.subject_ids)
        targets = [train.select(subjects=[stand_in]).trials[:]]
        train = train.select(subjects=[s for s in train.subject_ids if s != stand_in])
    else:
        targets = new
    classes = known.data.labels
    codes = np.searchsorted(classes, train.y)
    shares = class_weights(codes, len(classes), train.subject)
    weights = torch.as_tensor(shares, dtype=torch.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(known.seed)
        shape = known.data.n_channels, known.data.n_times
        encoder = make_encoder(clf.encoder, *shape, clf.sfreq, clf.encoder_options)
        network = Network(encoder, len(classes))
        module = Classifier(network)
        stopping = Stopping(
            torch.from_numpy(normaliser.transform(held.trials[:])),
            torch.from_numpy(np.searchsorted(classes, held.y)),
            weights,
            clf.learning_rate,
            clf.schedule,
            clf.patience,
        )
        more: dict[str, Any] = {}
        if method != "DeepCoral":
            n_inputs = network.n_latent * (len(classes) if method == "CDAN" else 1)
            more["domain_classifier"] = domain_classifier(min(n_inputs, 4096))
        net = getattr(skada.deep, method)(
            module,
            layer_name="encoder",
            reg=reg,
            base_criterion=nn.CrossEntropyLoss(weight=weights),
            optimizer=torch.optim.AdamW,
            optimizer__weight_decay=clf.weight_decay,
            lr=clf.learning_rate,
            batch_size=min(BATCH, len(train)),
            max_epochs=clf.options.epochs(train.n_trials),
            train_split=None,
            callbacks=[stopping],
            verbose=0,
            **more,
        )
        signals = [normaliser.transform(X) for X in [train.trials[:], *targets]]
        # Sources are numbered from 1, targets from -1 down; the labels of targets are masked.
        domain = [train.subject_code + 1]
        domain += [np.full(len(X), -i) for i, X in enumerate(targets, 1)]
        labels = [codes, *(np.full(len(X), -1) for X in targets)]
        net.fit(
            np.concatenate(signals),
            np.concatenate(labels),
            sample_domain=np.concatenate(domain),
        )
    module.load_state_dict(stopping.best)

    def predict(X: Array) -> Array:
        signals = torch.from_numpy(normaliser.transform(np.asarray(X)))
        predicted: Array = classes[logits(module, signals).argmax(1).numpy()]
        return predicted

    return predict
