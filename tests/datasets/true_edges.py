"""Edges as plain sets, and a linear test that finds them."""

from statsmodels.tsa.api import VAR


def triples(graph):
    return {(e.cause, e.effect, e.lag) for e in graph.edges}


def cross_pairs(graph):
    return {(e.cause, e.effect) for e in graph.edges if e.cause != e.effect}


def granger_pairs(series, max_lag=3, level=0.01):
    fitted = VAR(series.values).fit(max_lag)
    n = range(series.n_series)
    return {
        (series.names[cause], series.names[effect])
        for cause in n
        for effect in n
        if cause != effect and fitted.test_causality(effect, [cause], kind="f").pvalue < level
    }
