"""Environments that come with Shoal as kernels."""

from shoal._envs.builtin import builtin_kernel, has_builtin_kernel

__all__ = ["builtin_kernel", "has_builtin_kernel"]
