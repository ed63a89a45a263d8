"""A linear map of dense or sparse features."""

from torch import Tensor, nn

from nfgnn.nn.features import Features, as_csr, is_dense


class Linear(nn.Linear):
    """:class:`torch.nn.Linear` that also takes sparse input, at the cost of its stored values."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias)
        # Stored column by column, because the sparse product reads the transpose.
        self.weight = nn.Parameter(self.weight.detach().T.contiguous().T)

    def forward(self, input: Features) -> Tensor:
        if is_dense(input):
            return super().forward(input)
        output = as_csr(input) @ self.weight.T
        return output if self.bias is None else output + self.bias
