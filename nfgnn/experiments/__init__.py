"""Which runs make a table, and what becomes of them.

:mod:`~nfgnn.experiments.tables` is the registry of tables; :mod:`~nfgnn.experiments.plan` narrows an entry to what the
user asked for; :mod:`~nfgnn.experiments.reproduce` runs what is missing of it. A run becomes a
:class:`~nfgnn.experiments.records.Record` in :mod:`~nfgnn.experiments.cells` and is kept by
:mod:`~nfgnn.experiments.records`; :mod:`~nfgnn.experiments.exchange` carries records in and out of files.
:mod:`~nfgnn.experiments.statistics` says what many runs mean. :mod:`~nfgnn.experiments.tune` searches the grids of
:mod:`~nfgnn.experiments.spaces`. Nothing here is drawn or laid out: that is :mod:`nfgnn.report`.
"""
