"""The overloads of ``shoal.make`` agree with its implementation."""

import inspect
from dataclasses import fields
from typing import get_overloads

import pytest

import shoal
from shoal._options import VectorOptions
from shoal.kernels import Kernel
from shoal.vector._kernel_vector_env import KernelVectorEnv

IMPLEMENTATION = inspect.signature(shoal.make)
FOR_KERNELS, GENERAL = map(inspect.signature, get_overloads(shoal.make))


def test_last_overload_equals_the_implementation():
    assert GENERAL == IMPLEMENTATION


def test_kernel_overload_has_options_of_the_implementation():
    assert FOR_KERNELS.return_annotation == "KernelVectorEnv"
    assert FOR_KERNELS.parameters["what"].annotation == "Kernel"
    for name, parameter in FOR_KERNELS.parameters.items():
        expected = IMPLEMENTATION.parameters[name]
        assert (parameter.kind, parameter.default) == (expected.kind, expected.default)
        if name not in ("what", "backend"):
            assert parameter.annotation == expected.annotation


@pytest.mark.parametrize("signature", [FOR_KERNELS, GENERAL], ids=["kernel", "general"])
def test_options_are_keyword_only(signature):
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    assert kinds[:2] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 2
    assert set(kinds[2:-1]) == {inspect.Parameter.KEYWORD_ONLY}
    assert kinds[-1] is inspect.Parameter.VAR_KEYWORD


def test_options_equal_those_of_vector_options():
    options = {
        name: parameter.default
        for name, parameter in IMPLEMENTATION.parameters.items()
        if name not in ("what", "num_envs", "wrappers", "env_kwargs")
    }
    assert options == {field.name: field.default for field in fields(VectorOptions)}
    with pytest.raises(TypeError):
        VectorOptions("inline")


@pytest.mark.parametrize("backend", ["auto", "kernel"])
def test_kernels_make_kernel_vectors(backend):
    with shoal.make("CartPole-v1", backend="kernel") as envs:
        kernel = envs.pool.kernel
    assert isinstance(kernel, Kernel)
    with shoal.make(kernel, 2, backend=backend) as envs:
        assert type(envs) is KernelVectorEnv
