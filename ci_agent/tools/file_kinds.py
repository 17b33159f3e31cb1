"""What a file is, by its first bytes."""

_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)

_BINARIES = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a zip archive (or a document or package made of one)"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
    (b"\xca\xfe\xba\xbe", "a Java class or a universal Mach-O program"),
    (b"MZ", "a Windows program or library"),
    (b"\x00asm", "a WebAssembly module"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"!<arch>\n", "a static library or a Debian package"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
    (b"BM", "a BMP image"),
    (b"\x00\x00\x01\x00", "an icon"),
    (b"wOF2", "a web font"),
)


def image_type(head: bytes) -> str | None:
    """The MIME type of an image that models can see; None for everything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for magic, mime_type in _IMAGES if head.startswith(magic)), None)


def describe_binary(head: bytes) -> str:
    """What a file that is not text probably is, with its article."""
    if head[257:262] == b"ustar":
        return "a tar archive"
    return next((kind for magic, kind in _BINARIES if head.startswith(magic)), "binary data")
