"""Loads, stores, copies and atomics."""

from instruction import translates
from operands import BITS, C_TYPE, HALVES, vector


@translates('ld', 'ldu', 'st')
def load_or_store(i):
    space = i.space('global', 'shared', 'param', 'local', 'const')
    registers, where = (0, 1) if i.name != 'st' else (1, 0)
    kind, names = C_TYPE[i.type], vector(i.operands[registers])
    size = len(names) * BITS[i.type] // 8
    code = f'{kind} *a_ = ({kind}*){i.kernel.address(i.operands[where], space)}; ALIGNED(a_, {size}); '
    if i.name == 'st':
        code += ' '.join(f'a_[{n}] = {i.kernel.read(x, i.type)};' for n, x in enumerate(names))
    else:
        # All values are loaded before one of the registers, which the address may be made of,
        # changes.
        code += ' '.join(f'{kind} v{n}_ = a_[{n}];' for n in range(len(names)))
        code += i.write_all(names, [f'v{n}_' for n in range(len(names))], i.type)
    i.emit(code)


@translates('cp')
def copy(i):
    """Asynchronous copies are made at once, so that there is nothing to wait for."""
    if not i.has('async') or i.has('bulk', 'mbarrier'):
        raise i.unknown()
    if i.has('commit_group', 'wait_group', 'wait_all'):
        return
    room = int(i.operands[2])
    size = i.read(3, 'u32') if len(i.operands) > 3 else str(room)
    to, of = i.kernel.address(i.operands[0], 'shared'), i.kernel.address(i.operands[1], 'global')
    i.emit(
        f'char *d_ = {to}; u32 n_ = {size}; '
        f'__builtin_memset(d_, 0, {room}); __builtin_memcpy(d_, {of}, n_);'
    )


def _joined(operation, old, new):
    """What an atomic leaves."""
    match operation:
        case 'exch':
            return new
        case 'add':
            return f'{old} + {new}'
        case 'and':
            return f'{old} & {new}'
        case 'or':
            return f'{old} | {new}'
        case 'xor':
            return f'{old} ^ {new}'
        case 'min':
            return f'({old} < {new} ? {old} : {new})'
        case 'max':
            return f'({old} > {new} ? {old} : {new})'
    return None


def _atomic_halves(i, operation, n, value, address):
    """One half or a pair: declarations, and the name of what was there."""
    widen, narrow = HALVES[i.type.removesuffix('x2')]
    count = 2 if i.type.endswith('x2') else 1
    bits = 'u32' if count == 2 else 'u16'
    old = f'a{n}_[0] | (u32)a{n}_[1] << 16' if count == 2 else f'*a{n}_'
    code = (f'u16 *a{n}_ = (u16*){address} + {n * count}; u32 o{n}_ = {old}; '
            f'u32 x{n}_ = {i.kernel.read(value, bits)}; ')
    for half in range(count):
        result = _joined(operation, f'{widen}(a{n}_[{half}])', f'{widen}((u16)(x{n}_ >> {16 * half}))')
        if result is None:
            raise i.unknown()
        code += f'a{n}_[{half}] = {narrow}({result}); '
    return code, 'b32' if count == 2 else 'b16'


def _atomic_numbers(i, operation, n, value, address):
    kind, new = C_TYPE[i.type], i.kernel.read(value, i.type)
    if operation == 'cas':
        result = f'(o{n}_ == {new} ? {i.read(3, i.type)} : o{n}_)'
    else:
        result = _joined(operation, f'o{n}_', new)
    if result is None:
        raise i.unknown()
    return f'{kind} *a{n}_ = ({kind}*){address} + {n}; {kind} o{n}_ = *a{n}_; *a{n}_ = {result}; ', i.type


@translates('atom', 'red')
def atomic(i):
    """One thread runs at a time, so that every access is atomic."""
    if i.name == 'red':
        i.operands.insert(0, '_')
    address = i.kernel.address(i.operands[1], i.space('global', 'shared'))
    operation = i.one_of('add', 'min', 'max', 'and', 'or', 'xor', 'exch', 'cas', 'inc', 'dec')
    targets = vector(i.operands[0])
    of_halves = i.type in ('f16', 'bf16', 'f16x2', 'bf16x2')
    code = ''
    for n, value in enumerate(vector(i.operands[2])):
        part, kind = (_atomic_halves if of_halves else _atomic_numbers)(i, operation, n, value, address)
        code += part
        if targets != ['_']:
            code += i.kernel.write(targets[n], f'o{n}_', kind)
    i.emit(code)
