"""Registers, numbers and addresses of PTX as C expressions."""

import re


class Unknown(Exception):
    """Something of PTX that is not translated."""


BITS = {
    'pred': 1,
    'b8': 8, 'u8': 8, 's8': 8,
    'b16': 16, 'u16': 16, 's16': 16, 'f16': 16, 'bf16': 16,
    'b32': 32, 'u32': 32, 's32': 32, 'f32': 32, 'f16x2': 32, 'bf16x2': 32, 'tf32': 32,
    'b64': 64, 'u64': 64, 's64': 64, 'f64': 64,
    'b128': 128,
}
# Halves are kept as their bits, pairs of halves as one number of 32 bits.
C_TYPE = {
    'pred': 'u8',
    'b8': 'u8', 'u8': 'u8', 's8': 's8',
    'b16': 'u16', 'u16': 'u16', 's16': 's16', 'f16': 'u16', 'bf16': 'u16',
    'b32': 'u32', 'u32': 'u32', 's32': 's32', 'f32': 'f32', 'f16x2': 'u32', 'bf16x2': 'u32', 'tf32': 'u32',
    'b64': 'u64', 'u64': 'u64', 's64': 's64', 'f64': 'f64',
}
FLOATS = ('f32', 'f64')
SIGNED = ('s8', 's16', 's32', 's64')
# Functions of execute/values.h: from a half to a float, and back.
HALVES = {'f16': ('h2f', 'f2h'), 'bf16': ('b2f', 'f2b')}

SPECIAL = {
    f'%{name}.{axis}': f'T->{name}[{i}]'
    for name in ('tid', 'ntid', 'ctaid', 'nctaid')
    for i, axis in enumerate('xyz')
} | {
    '%laneid': 'T->lane',
    '%warpid': 'T->warp',
    '%clock': '0u',
    '%clock64': '0ull',
    '%globaltimer': '0ull',
    '%dynamic_smem_size': 'T->shared_size',
    '%lanemask_lt': '((1u<<T->lane)-1u)',
    '%lanemask_eq': '(1u<<T->lane)',
    '%lanemask_le': '((2u<<T->lane)-1u)',
    '%lanemask_gt': '(~((2u<<T->lane)-1u))',
    '%lanemask_ge': '(~((1u<<T->lane)-1u))',
    '%smid': '0u',
    '%nsmid': '132u',
    '%cluster_ctaid.x': '0u',
    '%cluster_ctarank': '0u',
    '%cluster_nctaid.x': '1u',
    'WARP_SZ': '32u',
}


def mangled(name):
    """A PTX name as a C name."""
    return name.replace('%', 'R_').replace('$', 'L_').replace('.', '_')


def split(text):
    """Operands between commas that are outside of all brackets."""
    parts, depth, current = [], 0, ''
    for c in text:
        if c in '{[(':
            depth += 1
        if c in '}])':
            depth -= 1
        if c == ',' and depth == 0:
            parts.append(current.strip())
            current = ''
        else:
            current += c
    if current.strip():
        parts.append(current.strip())
    return parts


def vector(operand):
    """The elements of `{a, b}`; of anything else, itself."""
    operand = operand.strip()
    return [x.strip() for x in operand[1:-1].split(',')] if operand.startswith('{') else [operand]


class Kernel:
    """The names that are known at a place of a kernel, and the C that was written so far."""

    def __init__(self):
        self.scopes = [{}]
        # Offsets of static shared memory.
        self.shared = {}
        self.shared_size = 0
        # Names of shared memory whose size the launch chooses.
        self.dynamic = set()
        self.parameters = {}
        self.constants = set()
        self.local = set()
        # Places where lanes of a warp or threads of a block meet.
        self.sites = 0
        self.lines = []

    def site(self):
        """A number for a meeting."""
        self.sites += 1
        return self.sites

    def share(self, align, name, size):
        """Gives static shared memory a place."""
        self.shared_size = (self.shared_size + align - 1) // align * align
        self.shared[name] = self.shared_size
        self.shared_size += size

    def type_of(self, name):
        """PTX type of a register; None of anything else."""
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def read(self, name, want):
        """An operand as an expression of PTX type `want`."""
        name = name.strip()
        if name.startswith('!'):
            return f'(!{self.read(name[1:], "pred")})'
        declared = self.type_of(name)
        if declared:
            return self._register(name, declared, want)
        if name in SPECIAL:
            return SPECIAL[name]
        return self._number(name, want) or self._symbol(name, want)

    def _register(self, name, declared, want):
        register = mangled(name)
        if 'pred' in (want, declared):
            return register
        if declared in FLOATS:
            if want in FLOATS:
                return register
            return f'(({C_TYPE[want]}){"f2u" if declared == "f32" else "d2u"}({register}))'
        if want in FLOATS:
            return f'u2f((u32){register})' if want == 'f32' else f'u2d({register})'
        return f'(({C_TYPE[want]}){register})'

    @staticmethod
    def _number(text, want):
        if re.match(r'^-?0[fF][0-9a-fA-F]{8}$', text):
            bits = '0x' + text[-8:]
            return f'u2f({bits}u)' if want == 'f32' else f'({bits}u)'
        if re.match(r'^0[dD][0-9a-fA-F]{16}$', text):
            bits = '0x' + text[2:]
            return f'u2d({bits}ull)' if want == 'f64' else f'({bits}ull)'
        if not re.match(r'^-?(0[xX][0-9a-fA-F]+|\d+)[uU]?$', text):
            return None
        number = int(text.rstrip('uU'), 0)
        if want in FLOATS:
            return f'u2f({number & 0xffffffff}u)' if want == 'f32' else f'u2d({number}ull)'
        return f'(({C_TYPE[want]}){number & (1 << 64) - 1}ull)'

    def _symbol(self, name, want):
        offset = re.match(r'^([\w$%.]+)\s*\+\s*(-?\d+)$', name)
        if offset:
            return f'({self.read(offset.group(1), want)} + {offset.group(2)})'
        if name in self.shared:
            return f'(({C_TYPE[want]}){self.shared[name]})'
        if name in self.dynamic:
            return f'(({C_TYPE[want]})DYNAMIC)'
        if name in self.parameters:
            return f'((u64)P[{self.parameters[name]}])'
        if name in self.constants | self.local:
            return f'((u64){mangled(name)})'
        raise Unknown(f'operand {name}')

    def write(self, name, expression, kind):
        """A statement that assigns a value of PTX type `kind` to a register."""
        name = name.strip()
        if name == '_':
            return f'(void)({expression});'
        declared = self.type_of(name)
        if not declared:
            raise Unknown(f'target {name}')
        register = mangled(name)
        if 'pred' in (declared, kind) or declared in FLOATS and kind in FLOATS:
            return f'{register} = {expression};'
        if declared in FLOATS:
            return f'{register} = {"u2f((u32)" if declared == "f32" else "u2d("}{expression});'
        if kind in FLOATS:
            return f'{register} = {"f2u" if kind == "f32" else "d2u"}({expression});'
        if kind in SIGNED and BITS[kind] > BITS[declared]:
            return f'{register} = ({C_TYPE[declared]})({expression});'
        return f'{register} = ({C_TYPE[declared]})({C_TYPE[kind]})({expression});'

    def address(self, text, space):
        """`[base+offset]` in a space as a pointer to char."""
        text = text.strip()
        if text[0] != '[' or text[-1] != ']':
            raise Unknown(f'address {text}')
        parts = re.match(r'^(.+?)\s*([+-]\s*-?\d+)?$', text[1:-1].strip())
        base, offset = parts.group(1).strip(), (parts.group(2) or '+0').replace(' ', '').replace('+-', '-')
        if space == 'param' and base in self.parameters:
            return f'((char*)P[{self.parameters[base]}] {offset})'
        if space == 'param' and self.type_of(base) is None:
            return f'((char*){mangled(base)} {offset})'
        if space == 'shared':
            return f'(T->shared + (u32)({self.read(base, "u32")} {offset}))'
        return f'((char*)({self.read(base, "u64")} {offset}))'
