"""XXH3-64 with seed 0, with NumPy, for reader.py: the checksum of brick files.

Written from the published description of the algorithm (xxHash specification 0.2.0, section on XXH3).
"""
import numpy as np

MASK = (1 << 64) - 1
PRIME32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
PRIME64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
PRIME_MX1, PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
SECRET = bytes.fromhex(
    'b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221'
    'b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8'
    'a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb'
    '170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e')
STRIPE = 64
# The last stripe of a block starts 8 bytes further in the secret than the one before; as many fit.
STRIPES = (len(SECRET) - STRIPE) // 8


def u32(data, at):
    return int.from_bytes(data[at:at + 4], 'little')


def u64(data, at):
    return int.from_bytes(data[at:at + 8], 'little')


def folded(a, b):
    """The two halves of a 128-bit product, one over the other."""
    product = a * b
    return (product ^ product >> 64) & MASK


def avalanche(h):
    h = ((h ^ h >> 37) * PRIME_MX1) & MASK
    return h ^ h >> 32


def avalanche64(h):
    """The last step of XXH64, which short inputs take."""
    h = ((h ^ h >> 33) * PRIME64[1]) & MASK
    h = ((h ^ h >> 29) * PRIME64[2]) & MASK
    return h ^ h >> 32


def mixed(data, at, secret_at):
    """16 bytes of the input with 16 of the secret."""
    return folded(u64(data, at) ^ u64(SECRET, secret_at), u64(data, at + 8) ^ u64(SECRET, secret_at + 8))


def short(data):
    """Up to 16 bytes."""
    n = len(data)
    if n > 8:
        flip1, flip2 = u64(SECRET, 24) ^ u64(SECRET, 32), u64(SECRET, 40) ^ u64(SECRET, 48)
        low, high = u64(data, 0) ^ flip1, u64(data, n - 8) ^ flip2
        swapped = int.from_bytes(low.to_bytes(8, 'little'), 'big')
        return avalanche((n + swapped + high + folded(low, high)) & MASK)
    if n >= 4:
        keyed = (u32(data, n - 4) + (u32(data, 0) << 32)) ^ u64(SECRET, 8) ^ u64(SECRET, 16)
        h = keyed ^ ((keyed << 49 | keyed >> 15) & MASK) ^ ((keyed << 24 | keyed >> 40) & MASK)
        h = (h * PRIME_MX2) & MASK
        h = ((h ^ (h >> 35) + n) * PRIME_MX2) & MASK
        return h ^ h >> 28
    if n:
        combined = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return avalanche64(combined ^ u32(SECRET, 0) ^ u32(SECRET, 4))
    return avalanche64(u64(SECRET, 56) ^ u64(SECRET, 64))


def middle(data):
    """17 to 240 bytes."""
    n = len(data)
    acc = n * PRIME64[0]
    if n <= 128:
        for i in range((n - 1) // 32, -1, -1):
            acc += mixed(data, 16 * i, 32 * i) + mixed(data, n - 16 * (i + 1), 32 * i + 16)
        return avalanche(acc & MASK)
    for i in range(8):
        acc += mixed(data, 16 * i, 16 * i)
    acc = avalanche(acc & MASK)
    for i in range(8, n // 16):
        acc += mixed(data, 16 * i, 16 * (i - 8) + 3)
    return avalanche((acc + mixed(data, n - 16, 136 - 17)) & MASK)


def secret_words(at):
    return np.frombuffer(SECRET, '<u8', 8, at)


KEYS = np.stack([secret_words(8 * i) for i in range(STRIPES)])
SCRAMBLE_KEY = secret_words(len(SECRET) - STRIPE)
LOW = np.uint64(0xFFFFFFFF)
NEIGHBOUR = [1, 0, 3, 2, 5, 4, 7, 6]


def added(stripes, keys):
    """What each stripe, a row of 8 words, adds to the accumulators."""
    keyed = stripes ^ keys
    return stripes[..., NEIGHBOUR] + (keyed & LOW) * (keyed >> np.uint64(32))


def long(data):
    """241 bytes and more. Blocks of stripes only add, so all are summed at once; between blocks comes a scramble."""
    acc = np.array([PRIME32[2], PRIME64[0], PRIME64[1], PRIME64[2], PRIME64[3], PRIME32[1], PRIME64[4], PRIME32[0]],
                   np.uint64)
    stripes = (len(data) - 1) // STRIPE
    words = np.frombuffer(data, '<u8', 8 * stripes).reshape(stripes, 8)
    blocks = stripes // STRIPES
    whole = words[:blocks * STRIPES].reshape(blocks, STRIPES, 8)
    prime = np.uint64(PRIME32[0])
    # A part at a time, so that the keyed words of a large input need no memory of its size.
    for part in range(0, blocks, 4096):
        for total in added(whole[part:part + 4096], KEYS).sum(axis=1, dtype=np.uint64):
            acc = acc + total
            acc = (acc ^ (acc >> np.uint64(47)) ^ SCRAMBLE_KEY) * prime
    rest = words[blocks * STRIPES:]
    acc = acc + added(rest, KEYS[:len(rest)]).sum(axis=0, dtype=np.uint64)
    acc = acc + added(np.frombuffer(data[-STRIPE:], '<u8'), secret_words(len(SECRET) - STRIPE - 7))
    acc = [int(word) for word in acc]
    h = len(data) * PRIME64[0]
    for i in range(4):
        h += folded(acc[2 * i] ^ u64(SECRET, 11 + 16 * i), acc[2 * i + 1] ^ u64(SECRET, 19 + 16 * i))
    return avalanche(h & MASK)


def xxh3_64(data):
    """The checksum of these bytes."""
    data = memoryview(data).cast('B')
    if len(data) <= 16:
        return short(bytes(data))
    if len(data) <= 240:
        return middle(bytes(data))
    return long(data)
