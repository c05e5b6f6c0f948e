from .imports import HOUSES, arrows, circles

for house in HOUSES:
    print(house.name)
    found = arrows(house)
    for room, used in found.items():
        print(f"  {room}: {', '.join(sorted(used))}")
    for circle in circles(found):
        print("  CIRCLE", ", ".join(circle))
        for one in house.imports():
            if one.of in circle and one.to in circle:
                print(f"      {one.of} -> {one.to}  {one.file}:{one.line}")
