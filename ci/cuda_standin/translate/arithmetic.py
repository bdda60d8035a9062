"""Arithmetic and bits."""

from instruction import translates
from operands import BITS, C_TYPE, FLOATS, HALVES

OF_FLOATS = FLOATS + ('f16', 'bf16', 'f16x2', 'bf16x2')
SYMBOLS = {'add': '+', 'sub': '-', 'mul': '*', 'div': '/', 'and': '&', 'or': '|', 'xor': '^'}


def _of_one(name, x, suffix):
    function = {
        'abs': 'fabs', 'sqrt': 'sqrt', 'ex2': 'exp2', 'lg2': 'log2', 'sin': 'sin', 'cos': 'cos', 'tanh': 'tanh',
    }
    match name:
        case 'neg':
            return f'-({x})'
        case 'rcp':
            return f'(1/({x}))'
        case 'rsqrt':
            return f'(1/__builtin_sqrt{suffix}({x}))'
    return f'__builtin_{function[name]}{suffix}({x})'


def _of_two(i, x, y, suffix):
    if i.name in ('min', 'max'):
        if i.has('NaN'):
            return f'nan{i.name}{suffix}({x}, {y})'
        return f'__builtin_f{i.name}{suffix}({x}, {y})'
    if i.name == 'copysign':
        return f'__builtin_copysign{suffix}({y}, {x})'
    if i.name not in SYMBOLS:
        raise i.unknown()
    result = f'({x} {SYMBOLS[i.name]} {y})'
    return f'sat({result})' if i.has('sat') else result


def _floats(i):
    suffix = '' if i.type == 'f64' else 'f'
    values = [i.read(n, i.type) for n in range(1, len(i.operands))]
    match values:
        case [x]:
            result = _of_one(i.name, x, suffix)
        case [x, y]:
            result = _of_two(i, x, y, suffix)
        case [x, y, z]:
            result = f'__builtin_fma{suffix}({x}, {y}, {z})'
            result = f'sat({result})' if i.has('sat') else result
    i.emit(i.write(result, i.type))


def _halves(i):
    """Halves are computed as floats and rounded; a pair one after the other."""
    paired = i.type.endswith('x2')
    widen, narrow = HALVES[i.type.removesuffix('x2')]

    def half(shift):
        bits = 'u32' if paired else 'u16'
        values = [f'{widen}((u16)({i.read(n, bits)} >> {shift}))' for n in range(1, len(i.operands))]
        match values:
            case [x]:
                result = _of_one(i.name, x, 'f')
            case [x, y]:
                result = _of_two(i, x, y, 'f')
            case [x, y, z]:
                result = f'(float)((double){x} * {y} + {z})'
        return f'{narrow}({f"__builtin_fmaxf(0, {result})" if i.has("relu") else result})'

    if paired:
        i.emit(i.write(f'((u32){half(16)} << 16) | {half(0)}', 'b32'))
    else:
        i.emit(i.write(half(0), 'b16'))


def of_floats(function):
    """Takes the float types of an instruction that has whole numbers, too."""
    def chosen(i):
        if i.type in FLOATS:
            _floats(i)
        elif i.type in OF_FLOATS:
            _halves(i)
        else:
            function(i)
    return chosen


@translates('sqrt', 'rsqrt', 'rcp', 'ex2', 'lg2', 'sin', 'cos', 'tanh', 'fma', 'copysign')
@of_floats
def only_of_floats(i):
    raise i.unknown()


@translates('add', 'sub', 'addc')
@of_floats
def add(i):
    unsigned = f'u{BITS[i.type]}'
    x, y = i.read(1, unsigned), i.read(2, unsigned)
    if not i.has('cc') and i.name != 'addc':
        i.emit(i.write(f'({C_TYPE[unsigned]}){x} {SYMBOLS[i.name]} {y}', unsigned))
        return
    if i.name == 'sub':
        raise i.unknown()
    carry = '+ (T->carry)' if i.name == 'addc' else ''
    code = f'unsigned __int128 s_ = (unsigned __int128){x} + {y} {carry}; ' + i.write(f'({unsigned})s_', unsigned)
    if i.has('cc'):
        code += f' T->carry = (u32)(s_ >> {BITS[i.type]}) & 1;'
    i.emit(code)


@translates('mul', 'mad', 'mul24', 'mad24')
@of_floats
def multiply(i):
    width, letter = BITS[i.type], 's' if i.type[0] == 's' else 'u'
    x, y = i.read(1, i.type), i.read(2, i.type)
    if width < 64:
        wide = f'{letter}{2 * width}'
    else:
        wide = '__int128' if letter == 's' else 'unsigned __int128'
    if i.has('wide'):
        result, kind = f'(({wide}){x} * ({wide}){y})', f'{letter}{2 * width}'
    elif i.has('hi'):
        result, kind = f'((({wide}){x} * ({wide}){y}) >> {width})', i.type
    else:
        result, kind = f'((u{width}){x} * (u{width}){y})', f'u{width}'
    if i.name in ('mad', 'mad24'):
        if i.has('cc'):
            raise i.unknown()
        result = f'({result} + {i.read(3, kind)})'
    i.emit(i.write(result, kind))


@translates('div', 'rem')
@of_floats
def divide(i):
    x, y, kind = i.read(1, i.type), i.read(2, i.type), C_TYPE[i.type]
    symbol = '/' if i.name == 'div' else '%'
    i.emit(f'{kind} y_ = {y}; ' + i.write(f'y_ == 0 ? ({kind})-1 : {x} {symbol} y_', i.type))


@translates('min', 'max')
@of_floats
def extreme(i):
    x, y = i.read(1, i.type), i.read(2, i.type)
    i.emit(i.write(f'{x} {"<" if i.name == "min" else ">"} {y} ? {x} : {y}', i.type))


@translates('neg')
@of_floats
def negate(i):
    i.emit(i.write(f'-{i.read(1, i.type)}', i.type))


@translates('abs')
@of_floats
def magnitude(i):
    x = i.read(1, i.type)
    i.emit(i.write(f'{x} < 0 ? -{x} : {x}', i.type))


@translates('and', 'or', 'xor')
def bitwise(i):
    i.emit(i.write(f'{i.read(1, i.type)} {SYMBOLS[i.name]} {i.read(2, i.type)}', i.type))


@translates('not')
def complement(i):
    i.emit(i.write(('!' if i.type == 'pred' else '~') + i.read(1, i.type), i.type))


@translates('shl', 'shr')
def shift(i):
    width = BITS[i.type]
    kind = i.type if i.name == 'shr' and i.type[0] == 's' else f'u{width}'
    x = i.read(1, kind)
    # A shift by the width or more is defined in PTX, and not in C.
    if i.name == 'shl':
        result = f'n_ >= {width} ? 0 : ({x} << n_)'
    else:
        result = f'n_ >= {width} ? ({x} < 0 ? -1 : 0) : ({x} >> n_)'
    i.emit(f'u32 n_ = {i.read(2, "u32")}; ' + i.write(result, kind))


@translates('shf')
def funnel_shift(i):
    low, high, by = (i.read(n, 'u32') for n in (1, 2, 3))
    by = f'({by} & 31)' if i.has('wrap') else f'({by} > 32 ? 32 : {by})'
    result = f'(u32)((v_ << {by}) >> 32)' if i.has('l') else f'(u32)(v_ >> {by})'
    i.emit(f'u64 v_ = ((u64){high} << 32) | {low}; ' + i.write(result, 'u32'))


@translates('bfi')
def insert_bits(i):
    kind = 'u32' if BITS[i.type] == 32 else 'u64'
    value, into, first, count = i.read(1, kind), i.read(2, kind), i.read(3, 'u32'), i.read(4, 'u32')
    mask = f'u64 m_ = ((({count}) >= 64 ? 0ull : (1ull << ({count}))) - 1ull) << ({first}); '
    i.emit(mask + i.write(f'(({into}) & ~m_) | ((((u64){value}) << ({first})) & m_)', i.type))


@translates('bfe')
def extract_bits(i):
    x, first, count = i.read(1, i.type), i.read(2, 'u32'), i.read(3, 'u32')
    if i.type[0] == 's':
        left = f'(s32)((u32)({x}) << (32 - ({first}) - ({count})))'
        result = f'({count}) == 0 ? 0 : {left} >> (32 - ({count}))'
    else:
        result = f'(({x}) >> ({first})) & ((({count}) >= 64 ? 0ull : (1ull << ({count}))) - 1ull)'
    i.emit(i.write(result, i.type))


@translates('prmt')
def permute_bytes(i):
    i.emit(i.write(f'prmt({i.read(1, "u32")}, {i.read(2, "u32")}, {i.read(3, "u32")})', 'u32'))


@translates('lop3')
def logic_of_three(i):
    """The last operand is the truth table."""
    a, b, c = (i.read(n, 'u32') for n in (1, 2, 3))
    table = int(i.operands[4], 0)
    terms = (
        f'({"" if n & 4 else "~"}{a} & {"" if n & 2 else "~"}{b} & {"" if n & 1 else "~"}{c})'
        for n in range(8) if table >> n & 1
    )
    i.emit(i.write(' | '.join(terms) or '0', 'u32'))


@translates('popc')
def count_ones(i):
    i.emit(i.write(f'__builtin_popcountll({i.read(1, f"u{BITS[i.type]}")})', 'u32'))


@translates('clz')
def count_leading_zeros(i):
    width = BITS[i.type]
    x = i.read(1, f'u{width}')
    i.emit(i.write(f'{x} ? __builtin_clz{"ll" if width == 64 else ""}({x}) : {width}', 'u32'))


@translates('brev')
def reverse_bits(i):
    kind = f'u{BITS[i.type]}'
    i.emit(i.write(f'brev{BITS[i.type]}({i.read(1, kind)})', kind))


@translates('bfind')
def highest_bit(i):
    x = i.read(1, 'u32')
    i.emit(i.write(f'{x} ? 31 - __builtin_clz({x}) : -1', 'u32'))


@translates('testp')
def property_of_float(i):
    x = i.read(1, i.type)
    result = {
        'notanumber': f'({x} != {x})', 'number': f'({x} == {x})',
        'finite': f'__builtin_isfinite({x})', 'infinite': f'__builtin_isinf({x})',
    }[i.modifiers[0]]
    i.emit(i.write(result, 'pred'))
