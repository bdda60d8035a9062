//! The script that makes a shell ask this program for completions.

use std::io;

use clap_complete::Shell;
use clap_complete::env::Shells;

use super::VARIABLE;

/// Bash splits words at `:` and `=`, and names of runs have colons. The function joins such words
/// before it calls that of `clap_complete`, and removes from the candidates what bash keeps.
const BASH: &str = r#"
_zoo_complete() {
    local rest="${COMP_LINE:0:COMP_POINT}" word i
    local -a joined=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word="${COMP_WORDS[i]}"
        if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then
            joined+=("")
        fi
        rest="${rest#"${rest%%[![:space:]]*}"}"
        if ((i == COMP_CWORD)); then
            word="$rest"
        fi
        joined[${#joined[@]} - 1]+="$word"
        rest="${rest#"$word"}"
    done
    local current="${joined[${#joined[@]} - 1]}" breaks=""
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=":"
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+="="
    local -a COMP_WORDS=("${joined[@]}")
    local COMP_CWORD=$((${#joined[@]} - 1))
    _clap_complete_zoo "$1" "$current" "$3"
    if [[ -n $breaks && $current == *[$breaks]* ]]; then
        local kept="${current%"${current##*[$breaks]}"}"
        for i in "${!COMPREPLY[@]}"; do
            COMPREPLY[i]="${COMPREPLY[i]#"$kept"}"
        done
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _zoo_complete zoo
else
    complete -o nospace -o bashdefault -F _zoo_complete zoo
fi
"#;

/// The script of a shell, to be read by it at its start. It calls `zoo`, which must be in PATH.
///
/// # Errors
/// The shell has no completer.
pub fn script(shell: Shell) -> io::Result<String> {
    let mut script = Vec::new();
    let name = shell.to_string();
    let completer = Shells::builtins();
    let completer = completer
        .completer(&name)
        .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, format!("{name} has no completions")))?;
    completer.write_registration(VARIABLE, "zoo", "zoo", "zoo", &mut script)?;
    let mut script =
        String::from_utf8(script).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    if shell == Shell::Bash {
        script.push_str(BASH);
    }
    Ok(script)
}
