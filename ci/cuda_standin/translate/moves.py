"""Control flow, moves, comparisons and conversions."""

from instruction import translates
from operands import BITS, C_TYPE, HALVES, mangled, vector

COMPARISONS = {
    'eq': '==', 'ne': '!=', 'lt': '<', 'le': '<=', 'gt': '>', 'ge': '>=',
    'lo': '<', 'ls': '<=', 'hi': '>', 'hs': '>=',
}
ROUNDINGS = {'rni': 'rint', 'rzi': 'trunc', 'rmi': 'floor', 'rpi': 'ceil'}


@translates('bra')
def branch(i):
    i.statement(f'goto {mangled(i.operands[0])};')


@translates('ret', 'exit')
def end(i):
    i.statement('return;')


@translates('trap')
def trap(i):
    i.emit('T->hooks->trap(T);')


@translates('membar', 'fence', 'pragma', 'prefetch', 'prefetchu', 'nanosleep', 'griddepcontrol', 'discard', 'brkpt')
def nothing(_):
    """One thread runs at a time, so that memory is always in order."""


@translates('mov')
def mov(i):
    target, source = i.operands
    if target.startswith('{'):
        parts = vector(target)
        width = BITS[i.type] // len(parts)
        shifted = [f'(v_ >> {n * width})' for n in range(len(parts))]
        i.emit(f'u64 v_ = {i.read(1, f"b{BITS[i.type]}")}; ' + i.write_all(parts, shifted, f'b{width}'))
    elif source.startswith('{'):
        parts = vector(source)
        width = BITS[i.type] // len(parts)
        joined = (f'((u64){i.kernel.read(x, f"u{width}")} << {n * width})' for n, x in enumerate(parts))
        i.emit(i.write(' | '.join(joined), f'b{BITS[i.type]}'))
    else:
        i.emit(i.write(i.read(1, i.type), i.type))


@translates('cvta')
def address_between_spaces(i):
    """Shared addresses are offsets, all others are pointers of the host."""
    value = i.read(1, 'u64')
    if i.one_of('global', 'local', 'param', 'const', 'shared') == 'shared':
        value = f'({value} {"-" if i.has("to") else "+"} (u64)T->shared)'
    i.emit(i.write(value, 'u64'))


@translates('setp')
def compare(i):
    comparison = i.modifiers[0]
    if i.type in HALVES:
        a, b = (f'{HALVES[i.type][0]}({i.read(n, "u16")})' for n in (1, 2))
    elif i.type in ('f16x2', 'bf16x2'):
        raise i.unknown()
    else:
        a, b = i.read(1, i.type), i.read(2, i.type)
    ordered = f'{a} == {a} && {b} == {b}'
    of_floats = i.type in ('f32', 'f64', 'f16', 'bf16')
    if comparison == 'num':
        result = f'({ordered})'
    elif comparison == 'nan':
        result = f'(!({ordered}))'
    elif comparison in COMPARISONS:
        result = f'({a} {COMPARISONS[comparison]} {b})'
        if of_floats and comparison == 'ne':
            result = f'({result} && {ordered})'
    elif of_floats and comparison[-1] == 'u' and comparison[:-1] in COMPARISONS:
        result = f'(!({ordered}) || ({a} {COMPARISONS[comparison[:-1]]} {b}))'
    else:
        raise i.unknown()
    if len(i.modifiers) > 1 and i.modifiers[1] in ('and', 'or', 'xor'):
        joined = {'and': '&', 'or': '|', 'xor': '^'}[i.modifiers[1]]
        result = f'({result} {joined} ({i.read(3, "pred")}))'
    target, *opposite = i.operands[0].split('|')
    code = i.kernel.write(target, result, 'pred')
    if opposite:
        code += i.kernel.write(opposite[0], '!' + mangled(target), 'pred')
    i.emit(code)


@translates('selp')
def select(i):
    i.emit(i.write(f'{i.read(3, "pred")} ? {i.read(1, i.type)} : {i.read(2, i.type)}', i.type))


@translates('slct')
def select_by_sign(i):
    kind, of_sign = i.types
    i.emit(i.write(f'{i.read(3, of_sign)} >= 0 ? {i.read(1, kind)} : {i.read(2, kind)}', kind))


@translates('cvt')
def convert(i):
    to, of = (i.types + [i.types[0]])[:2]
    if i.has('pack'):
        raise i.unknown()
    if to in ('f16x2', 'bf16x2') and of == 'f32':
        i.emit(i.write(_pair(i, HALVES[to[:-2]][1]), 'b32'))
        return
    value = f'{HALVES[of][0]}({i.read(1, "u16")})' if of in HALVES else i.read(1, of)
    of_float, to_float = (kind in ('f16', 'bf16', 'f32', 'f64') for kind in (of, to))
    rounding = next((x for x in i.modifiers if x in ROUNDINGS), None)
    if of_float and rounding:
        value = f'({"double" if of == "f64" else "float"})__builtin_{ROUNDINGS[rounding]}({value})'
    if to == 'tf32':
        i.emit(i.write(f'totf32({value})', 'b32'))
    elif to in HALVES:
        if i.has('rz'):
            raise i.unknown()
        i.emit(i.write(f'{HALVES[to][1]}((float)({value}))', 'b16'))
    elif to_float:
        i.emit(i.write(f'{"sat" if i.has("sat") else ""}(({C_TYPE[to]})({value}))', to))
    elif of_float:
        i.emit(i.write(f'f2i_{to}({value})', to))
    elif i.has('sat'):
        raise i.unknown()
    else:
        i.emit(i.write(f'(({C_TYPE[to]})({C_TYPE[of]})({value}))', to))


def _pair(i, narrow):
    """Two floats as halves in one number; the first operand is the upper one."""
    def half(operand):
        value = i.read(operand, 'f32')
        return f'{narrow}({f"__builtin_fmaxf(0, {value})" if i.has("relu") else value})'
    return f'((u32){half(1)} << 16) | {half(2)}'
