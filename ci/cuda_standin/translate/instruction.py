"""One instruction of PTX, and the table of what translates each."""

import re

from operands import BITS, Unknown, mangled, split

TRANSLATORS = {}


def translates(*names):
    """Registers a function for instructions of these names."""
    def register(function):
        TRANSLATORS.update(dict.fromkeys(names, function))
        return function
    return register


class Instruction:
    """`@%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1];` in parts."""

    def __init__(self, text, kernel):
        text = ' '.join(text.split())
        self.kernel = kernel
        self.guard = ''
        guarded = re.match(r'^@(!?)([%\w$]+)\s+(.*)$', text)
        if guarded:
            self.guard = f'if ({guarded.group(1)}{mangled(guarded.group(2))}) '
            text = guarded.group(3)
        parts = re.match(r'^([\w.:]+)\s*(.*)$', text)
        self.full = parts.group(1)
        # `shared::cta` is one modifier.
        self.name, *self.modifiers = self.full.rstrip('.').replace('::', '_C_').split('.')
        self.operands = split(parts.group(2))
        self.types = [x for x in self.modifiers if x in BITS]
        # The last type is that of the operands where there are several.
        self.type = self.types[-1] if self.types else None

    def has(self, *modifiers):
        """Whether it has one of these modifiers."""
        return any(x in self.modifiers for x in modifiers)

    def one_of(self, *modifiers):
        """The first of its modifiers that is one of these."""
        return next(x for x in self.modifiers if x in modifiers)

    def space(self, *known):
        """The memory that it goes to: one of these, or generic."""
        spaces = (x.split('_C_')[0] for x in self.modifiers)
        return next((x for x in spaces if x in known), 'generic')

    def shape(self):
        """Rows, columns and depth of a matrix instruction."""
        text = next(x for x in self.modifiers if re.match(r'm\d+n\d+k\d+', x))
        return [int(x) for x in re.findall(r'\d+', text)]

    def read(self, operand, want):
        """An operand, by its number, as an expression."""
        return self.kernel.read(self.operands[operand], want)

    def write(self, expression, kind, operand=0):
        """A statement that assigns to an operand, by its number."""
        return self.kernel.write(self.operands[operand], expression, kind)

    def write_all(self, names, values, kind):
        """Statements that assign to several registers."""
        return ' '.join(self.kernel.write(x, v, kind) for x, v in zip(names, values))

    def site(self):
        """A number for a meeting of lanes or threads."""
        return self.kernel.site()

    def emit(self, code):
        """Adds a block of statements."""
        self.kernel.lines.append(f'{self.guard}{{ {code} }}')

    def statement(self, code):
        """Adds one statement."""
        self.kernel.lines.append(self.guard + code)

    def unknown(self):
        """The error that it cannot be translated."""
        return Unknown(self.full)


def translate(text, kernel):
    """Adds the C of one instruction."""
    instruction = Instruction(text, kernel)
    if instruction.name not in TRANSLATORS:
        raise instruction.unknown()
    TRANSLATORS[instruction.name](instruction)
