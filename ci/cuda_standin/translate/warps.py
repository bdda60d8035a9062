"""Instructions in which threads of a warp or a block meet: barriers, shuffles, votes, matrices."""

from instruction import translates
from operands import vector


def _braced(i, names, kind):
    return '{' + ', '.join(i.kernel.read(x, kind) for x in names) + '}'


@translates('bar', 'barrier')
def barrier(i):
    if i.has('warp'):
        i.emit(f'T->hooks->meet(T, {i.site()});')
    elif i.has('sync') and not i.has('red', 'arrive') and len(i.operands) == 1:
        i.emit(f'T->hooks->barrier(T, {i.site()});')
    else:
        raise i.unknown()


@translates('shfl')
def shuffle(i):
    kind = ['idx', 'up', 'down', 'bfly'].index(i.one_of('idx', 'up', 'down', 'bfly'))
    target, *within = i.operands[0].split('|')
    value, by, clamp = (i.read(n, 'u32') for n in (1, 2, 3))
    code = f'int ok_; u32 v_ = T->hooks->shuffle(T, {i.site()}, {kind}, {value}, {by}, {clamp}, &ok_); '
    code += i.kernel.write(target, 'v_', 'b32')
    if within:
        code += i.kernel.write(within[0], 'ok_', 'pred')
    i.emit(code)


@translates('activemask')
def active_lanes(i):
    i.emit(i.write(f'T->hooks->active(T, {i.site()})', 'u32'))


@translates('vote')
def vote(i):
    how = i.one_of('ballot', 'any', 'all', 'uni')
    result = {'ballot': 'b_', 'any': 'b_ != 0', 'all': 'b_ == m_', 'uni': '(b_ == 0 || b_ == m_)'}[how]
    code = f'u32 m_, b_ = T->hooks->ballot(T, {i.site()}, {i.read(1, "pred")}, &m_); '
    i.emit(code + i.write(result, 'b32' if how == 'ballot' else 'pred'))


@translates('elect')
def elect(i):
    lane, chosen = i.operands[0].split('|')
    code = f'u32 m_, b_ = T->hooks->ballot(T, {i.site()}, 1, &m_); u32 l_ = __builtin_ctz(m_); '
    i.emit(code + i.kernel.write(lane, 'l_', 'u32') + i.kernel.write(chosen, 'l_ == T->lane', 'pred'))


@translates('redux')
def reduce(i):
    operations = ['add', 'min', 'max', 'and', 'or', 'xor']
    operation = operations.index(i.one_of(*operations))
    signed = int(i.type[0] == 's')
    i.emit(i.write(f'T->hooks->reduce(T, {i.site()}, {operation}, {signed}, {i.read(1, "u32")})', 'u32'))


@translates('ldmatrix', 'stmatrix')
def move_matrix(i):
    if not i.has('m8n8') or not i.has('b16'):
        raise i.unknown()
    count, transposed = int(i.one_of('x1', 'x2', 'x4')[1:]), int(i.has('trans'))
    registers, where = (0, 1) if i.name == 'ldmatrix' else (1, 0)
    names, address = vector(i.operands[registers]), i.kernel.address(i.operands[where], i.space('shared'))
    call = f'(T, {i.site()}, {count}, {transposed}, {address}, v_);'
    if i.name == 'ldmatrix':
        i.emit(f'u32 v_[4]; T->hooks->load_matrix{call} '
               + i.write_all(names, [f'v_[{n}]' for n in range(len(names))], 'b32'))
    else:
        i.emit(f'u32 v_[4] = {_braced(i, names, "u32")}; T->hooks->store_matrix{call}')


@translates('mma')
def multiply_matrices(i):
    rows, columns, depth = i.shape()
    out, of = i.types[:2]
    if rows != 16 or columns != 8 or out != 'f32' or of not in ('f16', 'bf16', 'tf32') or i.has('sp'):
        raise i.unknown()
    d, a, b, c = (vector(x) for x in i.operands[:4])
    kind = ['f16', 'bf16', 'tf32'].index(of)
    i.emit(
        f'u32 a_[4] = {_braced(i, a, "u32")}, b_[2] = {_braced(i, b, "u32")}; float c_[4] = {_braced(i, c, "f32")}; '
        f'T->hooks->multiply(T, {i.site()}, {depth}, {kind}, a_, b_, c_); '
        + i.write_all(d, [f'c_[{n}]' for n in range(len(d))], 'f32')
    )


@translates('wmma')
def fragments(i):
    if i.modifiers[0] == 'mma':
        _multiply_fragments(i)
    elif i.modifiers[0] in ('load', 'store'):
        _move_fragment(i)
    else:
        raise i.unknown()


def _move_fragment(i):
    rows, columns, depth = i.shape()
    height, width = {'a': (rows, depth), 'b': (depth, columns)}.get(i.modifiers[1], (rows, columns))
    if i.type not in ('f32', 'tf32', 'f16', 'bf16'):
        raise i.unknown()
    by_rows, size = int(i.one_of('row', 'col') == 'row'), 4 if i.type in ('f32', 'tf32') else 2
    registers, where = (0, 1) if i.modifiers[0] == 'load' else (1, 0)
    names, address = vector(i.operands[registers]), i.kernel.address(i.operands[where], i.space('shared', 'global'))
    stride = i.read(2, 'u32') if len(i.operands) > 2 else str(width if by_rows else height)
    call = f'(T, {height}, {width}, {by_rows}, {size}, {address}, {stride}, v_); T->hooks->meet(T, {i.site()});'
    if i.modifiers[0] == 'load':
        i.emit(f'u32 v_[16] = {{0}}; load_fragment{call} '
               + i.write_all(names, [f'v_[{n}]' for n in range(len(names))], 'b32'))
    else:
        i.emit(f'u32 v_[16] = {_braced(i, names, "u32")}; store_fragment{call}')


def _multiply_fragments(i):
    rows, columns, depth = i.shape()
    d, a, b, c = (vector(x) for x in i.operands[:4])
    # Of halves only the types of d and c are named; else those of all four.
    if len(i.types) == 2:
        out, added, of = i.types[0], i.types[1], 'f16'
    else:
        out, of, _, added = i.types
    kind = ['f16', 'bf16', 'tf32'].index(of)
    i.emit(
        f'u32 a_[16] = {_braced(i, a, "u32")}, b_[16] = {_braced(i, b, "u32")}; '
        f'u32 c_[16] = {_braced(i, c, "u32")}, d_[16]; '
        f'T->hooks->multiply_fragments(T, {i.site()}, (int[]){{{rows}, {columns}, {depth}}}, {kind}, '
        f'{int(added == "f16")}, {int(out == "f16")}, a_, b_, c_, d_); '
        + i.write_all(d, [f'd_[{n}]' for n in range(len(d))], 'b32')
    )
