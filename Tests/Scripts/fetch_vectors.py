#!/usr/bin/env python3
"""Fetches the public test vectors that the tests look for in .build/vectors.

Usage: fetch_vectors.py. Each file comes from its public repository at a fixed commit and is kept only if its SHA-256 is the one
below. Vectors that no public repository holds byte for byte are not fetched; their tests report that they are skipped.
"""
import hashlib
import pathlib
import sys
import urllib.request

FOLDER = pathlib.Path(__file__).resolve().parents[2] / ".build" / "vectors"
WYCHEPROOF = "C2SP/wycheproof/dac1dd4729fd1f8dd9e1e9f3dce51d783da6c166/testvectors_v1"
COOKBOOK = "ietf-jose/cookbook/13692b68bfc18b99557a5b1ed311fd5077bfff04"
VECTORS = [
    ("wycheproof/json_web_signature_test.json", WYCHEPROOF, "8e687a06fe8359f4ec51480f1a9f73c8faebd6f4c01b818b843b44eee54fd5d9"),
    ("wycheproof/json_web_key_test.json", WYCHEPROOF, "be983255bce26406f97020ec5458b33930a90d5f868e604fcd569c300aba2862"),
    ("wycheproof/json_web_crypto_test.json", WYCHEPROOF, "dcd58ac9548a7d6173437a691e4cc307dcd3cec9fd814a39cd2a94531cf4f8ce"),
    ("wycheproof/rsa_signature_2048_sha256_test.json", WYCHEPROOF, "94a917b01ff50fb874cfc05bf29b4af44868d944a6558201cf18380da93fb393"),
    ("rfc7520-cookbook/3_3.rsa_public_key.json", f"{COOKBOOK}/jwk", "0aa5a52806d454d9f8d771bc3f168cf6e343275fd7be5c4d46f75593c61e956f"),
    ("rfc7520-cookbook/4_1.rsa_v15_signature.json", f"{COOKBOOK}/jws", "5836d16f4fa62fa311b047002e0636eba2789a6f558a26d49acfaeeb26fa470c"),
    ("rfc7520-cookbook/4_2.rsa-pss_signature.json", f"{COOKBOOK}/jws", "8fdd88ad7d400ddbe082701a63221f69a56009c7adc5317218d3efb264dc17e3"),
    ("rfc7520-cookbook/4_3.ecdsa_signature.json", f"{COOKBOOK}/jws", "22626cf81d7b3c25e6a22108af1ccc6c51ee4d7f5822ccce6c55b47d36e5c819"),
    ("rfc7520-cookbook/4_4.hmac-sha2_integrity_protection.json", f"{COOKBOOK}/jws", "a6e9313069c35a040b0d98bfd443a3bea7119874415dcae0124d67889c8310f5"),
    ("rfc7520-cookbook/4_8.multiple_signatures.json", f"{COOKBOOK}/jws", "0b5169298d8415a0dcd86a25ac32f794a6072546c10de1ddb98316d82ce3307a"),
]


failed = False
for name, place, digest in VECTORS:
    target = FOLDER / name
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == digest:
        continue
    with urllib.request.urlopen(f"https://raw.githubusercontent.com/{place}/{target.name}", timeout=30) as answer:
        data = answer.read(8 << 20)
    if (found := hashlib.sha256(data).hexdigest()) != digest:
        print(f"FAILED: {name}: its SHA-256 is {found}, not {digest}")
        failed = True
        continue
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
sys.exit(failed)
