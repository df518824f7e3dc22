"""What LLM serving keeps: model geometry -> bytes; prefill time; reload or recompute.  Pure."""
