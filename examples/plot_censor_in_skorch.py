"""
A censor inside skorch
======================

skorch calls ``get_loss`` and ``train_step_single``; a censor needs the latent and the subject,
so both go through the data: the subject beside the signals, the latent beside the logits.
"""

from __future__ import annotations

from typing import Any

import torch
from skorch import NeuralNetClassifier
from skorch.dataset import unpack_data
from torch import Tensor, nn

import autotransfer as at
from autotransfer.censoring import critic_optimisers, make_censor


class Net(nn.Module):
    """EEGNet and a linear classifier; returns logits and latent."""

    def __init__(self, n_channels: int, n_times: int, n_classes: int) -> None:
        super().__init__()
        self.encoder = at.EEGNet(n_channels, n_times)
        self.head = nn.Linear(self.encoder.n_latent, n_classes)

    def forward(self, signal: Tensor, subject: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and latent; the subject is for the loss alone."""
        z = self.encoder(signal)
        return self.head(z), z


class CensoredNet(NeuralNetClassifier):  # type: ignore[misc]  # skorch has no types
    """skorch's classifier with a penalty in its training step."""

    def __init__(
        self,
        *args: Any,
        measure: str = "mmd",
        mode: str = "marginal",
        strength: float = 3.0,
        n_subjects: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.measure, self.mode, self.strength = measure, mode, strength
        self.n_subjects = n_subjects

    def initialize_module(self) -> CensoredNet:
        """Make the censor beside the network."""
        super().initialize_module()
        self.censor_ = make_censor(
            self.measure,
            self.mode,
            n_latent=self.module_.encoder.n_latent,
            n_subjects=self.n_subjects,
            n_classes=len(self.classes),
        )
        return self

    def initialize_optimizer(self, *args: Any, **kwargs: Any) -> CensoredNet:
        """Give the network skorch's optimiser, and the critics their own."""
        parameters = list(self.module_.parameters())
        self.optimizer_ = self.optimizer(parameters, lr=self.lr)
        self.critics_ = critic_optimisers(self.censor_, self.lr * self.censor_.measure.critic_speed)
        return self

    def train_step_single(self, batch: Any, **fit_params: Any) -> dict[str, Tensor]:
        """Critics first, then encoder and classifier."""
        self._set_training(True)
        x, y = unpack_data(batch)
        logits, z = self.infer(x, **fit_params)
        cells = self.censor_.cells(x["subject"], y)
        for _ in range(self.censor_.n_critic):
            critic_loss = self.censor_.critic_loss(z.detach(), cells)
            for critic in self.critics_:
                critic.zero_grad()
            critic_loss.backward()  # type: ignore[no-untyped-call]  # torch's own lack
            for critic in self.critics_:
                critic.step()
        loss = self.get_loss((logits, z), y, X=x, training=True)
        loss = loss + self.strength * self.censor_(z, cells)
        loss.backward()
        return {"loss": loss, "y_pred": logits}

    def get_loss(self, y_pred: Any, y_true: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Cross entropy of the logits."""
        loss: Tensor = super().get_loss(y_pred[0], y_true, *args, **kwargs)
        return loss


if __name__ == "__main__":
    torch.manual_seed(0)
    data = at.make_subjects(n_subjects=6, n_trials=48, n_channels=8, random_state=0)
    net = CensoredNet(
        Net,
        module__n_channels=8,
        module__n_times=128,
        module__n_classes=2,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.AdamW,
        lr=1e-3,
        max_epochs=10,
        batch_size=64,
        iterator_train__shuffle=True,
        train_split=None,  # skorch's own split mixes subjects
        classes=[0, 1],
        n_subjects=6,
        verbose=0,
    )
    net.fit({"signal": data.X[:], "subject": data.subject_code}, data.y_code)
    losses = net.history[:, "train_loss"]
    print(f"loss with penalty: {losses[0]:.3f} in the first epoch, {losses[-1]:.3f} in the last")
