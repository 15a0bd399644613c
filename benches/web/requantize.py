"""Rewrites a GGUF file with its matrices in another block format; embedding and vectors keep theirs.

usage: requantize.py IN.gguf OUT.gguf FORMAT        (PyPI packages: gguf, numpy; FORMAT as Q4_0 or Q8_0, no K-quants)
"""

import os
import sys

import gguf
import numpy as np
from gguf.quants import dequantize, quantize


def copy_metadata(reader, writer):
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), field.types[0])


def main(source, target, format_name):
    kind = gguf.GGMLQuantizationType[format_name]
    reader = gguf.GGUFReader(source)
    # The name is given last, so that a file of that name is whole.
    part = f"{target}.part"
    writer = gguf.GGUFWriter(part, reader.fields["general.architecture"].contents())
    copy_metadata(reader, writer)
    for tensor in reader.tensors:
        if len(tensor.shape) < 2 or tensor.name == "token_embd.weight":
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        else:
            values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
            writer.add_tensor(tensor.name, quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(part, target)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
