"""Which runs make a table, and what becomes of them.

:mod:`~nfgnn.paper.table_registry` is the registry of tables; :mod:`~nfgnn.paper.table_plan` narrows an entry to what the
user asked for; :mod:`~nfgnn.paper.reproduce` runs what is missing of it. A run becomes a
:class:`~nfgnn.training.Record` and is kept by
:class:`~nfgnn.training.Records`; :mod:`~nfgnn.training.records.export` carries records in and out of files.
:mod:`~nfgnn.paper.statistics` says what many runs mean. :mod:`~nfgnn.paper.tune` searches the grids of
:mod:`~nfgnn.paper.search_spaces`. Nothing here is drawn or laid out: that is :mod:`nfgnn.explain`.
"""
