// The NumPy C API, configured for an extension of several translation units.
// Only bindings.cpp defines SHOAL_IMPORT_NUMPY and calls import_array().
#pragma once

#define PY_ARRAY_UNIQUE_SYMBOL shoal_array_api
#ifndef SHOAL_IMPORT_NUMPY
#define NO_IMPORT_ARRAY
#endif
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION

#include <Python.h>
// CPython requires Python.h to be included first.
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
