"""Draws the cost curves as one SVG: each panel has the CPU time of a request over a logarithmic axis."""

import html
import math

WIDTH, HEIGHT, LEFT, TOP = 220, 150, 46, 34


def panel(name, curve, greatest, left):
    sizes = [float(size) for size in curve]
    low, high = math.log(min(sizes)), math.log(max(sizes) * 1.0001)

    def place(size, cost):
        across = (math.log(size) - low) / (high - low) if high > low else 0.5
        return left + LEFT + across * (WIDTH - LEFT - 20), TOP + (1 - cost / greatest) * (HEIGHT - TOP - 26)

    points = [place(size, cost["cpu_us"]) for size, cost in zip(sizes, curve.values())]
    base = TOP + HEIGHT - TOP - 26
    parts = [f'<text x="{left + LEFT}" y="18" font-weight="bold">{html.escape(name)}</text>',
             f'<path d="M{left + LEFT} {TOP}V{base}H{left + WIDTH - 12}" fill="none" stroke="#888"/>']
    for share in (0, 0.5, 1):
        y = TOP + (1 - share) * (base - TOP)
        parts.append(f'<text x="{left + LEFT - 4}" y="{y + 4:.1f}" text-anchor="end">{greatest * share:.0f} µs</text>')
    for size, (x, y) in zip(sizes, points):
        label = f"{size / 1000:.0f}k" if size >= 10_000 else f"{size:,.0f}"
        parts.append(f'<text x="{x:.1f}" y="{base + 14}" text-anchor="middle">{label}</text>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#1877f2"/>')
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#1877f2" stroke-width="1.5"/>')
    return "\n".join(parts)


def render(curves):
    greatest = 10 * math.ceil(max(cost["cpu_us"] for curve in curves.values() for cost in curve.values()) / 10)
    panels = [panel(name, curve, greatest, index * WIDTH) for index, (name, curve) in enumerate(curves.items())]
    width = WIDTH * len(panels)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" '
            f'font-family="sans-serif" font-size="10" role="img" aria-label="CPU time of a request as it grows">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(panels) + "\n</svg>\n")
