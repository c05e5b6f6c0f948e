import sys

from . import picture
from .imports import HOUSES, arrows, circles

if sys.argv[1:] == ["--write"]:
    for page in picture.PAGES:
        page.write_text(picture.renewed(page.read_text()))
    sys.exit()

for house in HOUSES:
    print(house.name)
    found = arrows(house)
    for room, used in found.items():
        print(f"  {room}: {', '.join(sorted(used))}")
    for circle in circles(found):
        print("  in a circle:", ", ".join(circle))
        for one in house.imports:
            if {one.of, one.to} <= set(circle):
                print(f"      {one.file}:{one.line}: {one.of} uses {one.to}")
