"""What one command may do to the machine, in words that every kind of sandbox understands."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Access:
    """Paths are absolute and free of symlinks; a folder stands for all beneath it. The rest may be read and run."""

    writable: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Those of `writable` that are folders which are not there yet. Made before the command is confined, or else they
    cannot be written."""
    hidden: tuple[str, ...] = ()
    """What must not be read; only what is there counts."""
    readable: tuple[str, ...] = ()
    """What may be read although it lies in something hidden."""
    protected: tuple[str, ...] = ()
    """What must not be written although it lies in something writable. Bubblewrap holds it, Landlock cannot."""
    network: bool = False
    """It may use more of it than sockets within the machine."""

    def with_writable(self, path: str) -> "Access":
        """The same, and this may be written too."""
        return replace(self, writable=(*self.writable, path))


def lies_in(path: str, folder: str) -> bool:
    """Whether a path is the folder or something beneath it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
