"""What every loss answers."""

from __future__ import annotations

from typing import ClassVar

from steelyard._common.arrays import Floats, Labels
from steelyard._common.settings import DeclaredPart
from steelyard.model.posteriors import Curvature


class Loss(DeclaredPart):
    """A loss of class scores ``z (n, K)`` and true classes ``y (n,)``.

    Losses see differences between scores only: adding a number to all scores of a row
    changes nothing, and the gradient of a row adds up to zero.
    """

    convex: ClassVar[bool] = True
    """Whether the loss is convex in the scores."""

    two_classes_only: ClassVar[bool] = False
    """Whether the loss is defined for two classes only."""

    is_likelihood: ClassVar[bool] = False
    """Whether the loss is a negative log-likelihood."""

    is_squared_error: ClassVar[bool] = False
    """Whether the loss is the squared error of the posterior."""

    has_bounded_slope: ClassVar[bool] = False
    """Whether no derivative exceeds the larger of ``parameter`` and 1, by size."""

    kernel: ClassVar[int | None] = None
    """Its number in ``kernels.losses``, None where there is only the NumPy form."""

    @property
    def link_scale(self) -> float:
        """Factor on the scores that makes their softmax estimate the posterior."""
        return 1.0

    @property
    def has_true_gradient(self) -> bool:
        """Whether ``value_and_gradient`` returns the derivative of its value."""
        return True

    @property
    def has_hessian(self) -> bool:
        """Whether the loss has second derivatives."""
        return type(self).hessian is not Loss.hessian

    @property
    def compiled(self) -> int | None:
        """Number of the compiled form, None where NumPy has to do.

        A subclass with a ``value_and_gradient`` of its own has another loss than the
        one that its base class has compiled.
        """
        for cls in type(self).__mro__:
            if "kernel" in vars(cls):
                return vars(cls)["kernel"]
            if "value_and_gradient" in vars(cls):
                return None
        return None

    @property
    def surrogate(self) -> Loss | None:
        """A loss with nearly the same minimiser that is quicker to minimise."""
        return None

    @property
    def parameter(self) -> float:
        """The number that the compiled form takes."""
        return 1.0

    def value_and_gradient(
        self, scores: Floats, y: Labels, weights: Floats | None
    ) -> tuple[float, Floats]:
        """Return the weighted sum over rows and its gradient, shapes () and (n, K)."""
        raise NotImplementedError

    def hessian(
        self, scores: Floats, y: Labels, weights: Floats | None, exact: bool = True
    ) -> Curvature:
        """Second derivatives by row.

        With ``exact=False`` a positive semidefinite stand-in: the Gauss-Newton matrix
        where the loss is not convex.
        """
        raise NotImplementedError
