"""Tables in Markdown, and the numbers in them."""


def significant(value, digits, sign="-"):
    """So many digits as it tells, without an exponent: 1420 and not 1.42e+03. With sign "+" a plus stands before what is not negative."""
    return f"{float(f'{value:.{digits}g}'):{sign}.15g}"


def markdown(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"
