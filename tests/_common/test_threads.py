"""Threads of fits, and of the libraries below them."""

from threadpoolctl import threadpool_info

from steelyard._common.threads import one_blas_thread


def blas_threads():
    return [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]


def test_limits_that_overlap_are_lifted_by_the_last():
    before = blas_threads()
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) <= {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before
