"""A linear map and a dropout that take sparse features as they are."""

import torch.nn.functional as F
from torch import Tensor, nn, strided

from nfgnn.propagate import CSR


class Linear(nn.Linear):
    """:class:`torch.nn.Linear` that also takes a sparse input, at the cost of its stored values only."""

    def forward(self, input: Tensor | CSR) -> Tensor:
        if isinstance(input, Tensor) and input.layout == strided:
            return super().forward(input)
        matrix = input if isinstance(input, CSR) else CSR.from_tensor(input)
        output = matrix @ self.weight.T
        return output if self.bias is None else output + self.bias


def dropout(x: Tensor | CSR, p: float, training: bool) -> Tensor | CSR:
    """Dropout; on a sparse matrix it draws for the stored values only, since a dropped zero is a zero."""
    if not training or p == 0:
        return x
    if isinstance(x, Tensor) and x.layout == strided:
        return F.dropout(x, p)
    matrix = x if isinstance(x, CSR) else CSR.from_tensor(x)
    return matrix.with_values(F.dropout(matrix.values, p))
