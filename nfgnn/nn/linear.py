"""A linear map of dense or sparse features."""

from torch import Tensor, nn, strided

from nfgnn.spectral import CSR


class Linear(nn.Linear):
    """:class:`torch.nn.Linear` that also takes sparse input, at the cost of its stored values."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias)
        # Stored column by column, because the sparse product reads the transpose.
        self.weight = nn.Parameter(self.weight.detach().T.contiguous().T)

    def forward(self, input: Tensor | CSR) -> Tensor:
        if isinstance(input, Tensor) and input.layout == strided:
            return super().forward(input)
        matrix = input if isinstance(input, CSR) else CSR.from_tensor(input)
        output = matrix @ self.weight.T
        return output if self.bias is None else output + self.bias
