#!/usr/bin/env python3
"""Trains a byte-level BPE of a text with Hugging Face's tokenizers.

Usage: tokenizer.py TEXT ENTRIES FILE    writes a tokenizer.json with `<|endoftext|>` as the last entry
"""
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

text, entries, file = sys.argv[1:]
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(vocab_size=int(entries), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                              special_tokens=["<|endoftext|>"])
tokenizer.train([text], trainer)
tokenizer.save(file)
