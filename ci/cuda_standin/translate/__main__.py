"""PTX as NVRTC writes it, to one C function that a thread of a kernel runs.

    python3 translate KERNEL.ptx > kernel.c

Ends with code 1 and the name of the first instruction that is not translated.
"""

import re
import sys

import arithmetic, memory, moves, warps  # noqa: E401,F401  (they register what they translate)
from instruction import translate
from operands import C_TYPE, Kernel, Unknown, mangled

CONSTANT = re.compile(
    r'^\s*(?:\.visible\s+|\.weak\s+|\.extern\s+)*\.(?:global|const)\s+(?:\.attribute\([^)]*\)\s*)?\.align\s+\d+\s+'
    r'\.(b8|u32|f32|b32|u64|b64)\s+([\w$]+)(\[\d*\])?\s*(=\s*\{[^}]*\}|=\s*[^;]+)?;',
    re.M,
)
ROOM = r'\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\]'


def declaration(text, kernel):
    """A line of a body that begins with a dot."""
    registers = re.match(r'^\.reg\s+\.(\w+)\s+(.*)$', text, re.S)
    local = re.match(rf'^\.local\s+{ROOM}$', text)
    shared = re.match(rf'^\.shared\s+{ROOM}$', text)
    if registers and registers.group(1) in C_TYPE:
        kind, names = registers.group(1), []
        for name in (x.strip() for x in registers.group(2).split(',')):
            several = re.match(r'^(.+)<(\d+)>$', name)
            names += [f'{several.group(1)}{n}' for n in range(int(several.group(2)))] if several else [name]
        kernel.scopes[-1].update(dict.fromkeys(names, kind))
        kernel.lines.append(f'{C_TYPE[kind]} ' + ', '.join(f'{mangled(x)} = 0' for x in names) + ';')
    elif local:
        align, name, size = local.groups()
        kernel.local.add(name)
        kernel.lines.append(f'char {mangled(name)}[{size}] __attribute__((aligned({align})));')
    elif shared:
        kernel.share(int(shared.group(1)), shared.group(2), int(shared.group(3)))
    elif not re.match(r'^\.(loc|pragma|file)\b', text):
        raise Unknown(f'declaration {text[:60]}')


def body(text, kernel):
    """Statements, labels and blocks."""
    i, current = 0, ''
    while i < len(text):
        c = text[i]
        if not current.strip():
            if c in '{}':
                kernel.lines.append(c)
                if c == '{':
                    kernel.scopes.append({})
                else:
                    kernel.scopes.pop()
                i, current = i + 1, ''
                continue
            if re.match(r'\.(loc|file)\s', text[i:i + 6]):
                i = text.find('\n', i)
                continue
        label = c == ':' and ':' not in (text[i - 1], text[i + 1:i + 2]) and re.match(r'^\s*[$\w%]+$', current)
        i += 1
        if label:
            kernel.lines.append(f'{mangled(current.strip())}: ;')
            current = ''
        elif c == ';':
            statement, current = current.strip(), ''
            if statement.startswith('.'):
                declaration(statement, kernel)
            elif statement:
                translate(statement, kernel)
        else:
            current += c


def module(source):
    """The C of a module with one kernel."""
    source = re.sub(r'//[^\n]*', '', source)
    source = re.sub(r'/\*.*?\*/', '', source, flags=re.S)
    kernel = Kernel()
    for kind, name, count, values in CONSTANT.findall(source):
        kernel.constants.add(name)
        kernel.lines.append(
            f'static {C_TYPE[kind]} {mangled(name)}{count or "[1]"} __attribute__((aligned(16))) {values};'
        )
    kernel.dynamic.update(re.findall(r'\.extern\s+\.shared\s+\.align\s+\d+\s+\.b8\s+([\w$]+)\[\]', source))
    for align, name, size in re.findall(rf'^\s*\.shared\s+{ROOM};', source, re.M):
        kernel.share(int(align), name, int(size))
    if re.search(r'^\s*(\.visible\s+|\.weak\s+)?\.func\b', source, re.M):
        raise Unknown('.func')
    entry = re.search(r'\.entry\s+[\w$]+\s*\((.*?)\)\s*[^{]*\{', source, re.S)
    parameters = (x.strip() for x in entry.group(1).split(',') if x.strip())
    for n, parameter in enumerate(parameters):
        kernel.parameters[re.search(r'([\w$]+)(\[\d+\])?\s*$', parameter).group(1)] = n
    end, depth = entry.end(), 1
    while depth:
        depth += {'{': 1, '}': -1}.get(source[end], 0)
        end += 1
    kernel.lines.append('void kernel(struct Thread *T, void **P) {')
    kernel.scopes.append({})
    body(source[entry.end():end - 1], kernel)
    kernel.lines.append('return; }')
    # Dynamic shared memory follows the static one.
    static = (kernel.shared_size + 1023) // 1024 * 1024
    head = ['#include "thread.h"', f'#define DYNAMIC {static}', f'int static_shared = {static};']
    return '\n'.join(head + kernel.lines)


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        source = file.read()
    try:
        print(module(source))
    except Unknown as unknown:
        sys.exit(f'not translated: {unknown}')


main()
