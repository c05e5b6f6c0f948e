"""All comparisons of `fencepost validate`, by name."""

from fencepost.validation import Comparison
from fencepost.validation.clx import CLX
from fencepost.validation.flits import FLITS
from fencepost.validation.host import HOST
from fencepost.validation.loaded import LOADED
from fencepost.validation.media import MEDIA
from fencepost.validation.persist import PERSIST
from fencepost.validation.sample import SAMPLE
from fencepost.validation.unloaded import UNLOADED

COMPARISONS: dict[str, Comparison] = {
    comparison.name: comparison
    for comparison in (HOST, PERSIST, CLX, MEDIA, UNLOADED, LOADED, SAMPLE, FLITS)
}
