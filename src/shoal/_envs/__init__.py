"""Built-in environments: kernels for Gymnasium environments, hockey, and Atari games."""

from shoal._envs.builtin import builtin_kernel, has_builtin_kernel

__all__ = ["builtin_kernel", "has_builtin_kernel"]
