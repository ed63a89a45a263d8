"""Names that options accept, without importing the registries, which would import torch.

Shell completion and validation read them. A test compares them with the registries.
"""

DATASETS = (
    "cora",
    "citeseer",
    "pubmed",
    "computers",
    "photo",
    "cs",
    "physics",
    "chameleon",
    "squirrel",
    "chameleon-filtered",
    "squirrel-filtered",
    "actor",
    "texas",
    "cornell",
    "cornell-genuine",
    "wisconsin",
    "roman-empire",
    "amazon-ratings",
    "minesweeper",
    "tolokers",
    "questions",
    "penn94",
    "reed98",
    "amherst41",
    "cornell5",
    "johnshopkins55",
    "genius",
    "pokec",
    "ogbn-arxiv",
    "ogbn-products",
    "ogbn-papers100m",
    "karate",
    "mixed",
)
MODELS = (
    "APPNP",
    "ARMA",
    "BMGCN",
    "BernNet",
    "ChebNet",
    "FAGCN",
    "GAT",
    "GCN",
    "GPRGNN",
    "LINK",
    "MLP",
    "NFGNN",
    "PolyGNN",
    "SGC",
    "ScalableBernNet",
    "ScalableGPRGNN",
    "ScalableNFGNN",
    "ScalablePolyGNN",
    "ScalableSGC",
)
PROTOCOLS = ("full", "semi", "stratified", "random", "geom-gcn", "public", "inductive")
BASES = ("chebyshev", "monomial", "bernstein", "legendre", "jacobi")
SCALINGS = ("auto", "row", "standard", "raw")
DTYPES = ("float32", "bfloat16", "float16")
ITEMS = ("semi", "full", "large", "inductive", "ablation", "orientation", "k-rank", "time")
PRESETS = ("best", "paper", "none")
FIRST_REPORT_SEED = 1000
"""Settings are selected on smaller split seeds, results are reported on these."""
