import { UsageError } from "../arguments.js";
import type { Command, Verbs } from "../command.js";
import { ExitCode } from "../exit-code.js";
import { print } from "../output.js";

export const completion: Command = {
  usage: ["bash|zsh"],
  about: "Prints a script that completes commands and options.",
  options: {},
  examples: [
    ['eval "$(holdfast completion bash)"', "in ~/.bashrc"],
    ['eval "$(holdfast completion zsh)"', "in ~/.zshrc, after compinit"],
  ],

  async run(args, _report, verbs) {
    const shell = args.one("The shell (bash or zsh)");
    if (shell !== "bash" && shell !== "zsh") {
      throw new UsageError(`There is a completion for bash and zsh, none for ${shell}.`);
    }
    const script = await (shell === "bash" ? bash(verbs) : zsh(verbs));
    await print(script.trimEnd().split("\n"));
    return ExitCode.ok;
  },
};

async function bash(verbs: Verbs): Promise<string> {
  const names = Object.keys(verbs);
  const cases = await Promise.all(
    names.map(async (verb) => `    ${verb}) words="${(await flagsOf(verbs, verb)).join(" ")}" ;;`),
  );
  return `_holdfast() {
  local word=\${COMP_WORDS[COMP_CWORD]} words="" index
  for ((index = 1; index < COMP_CWORD; index++)); do
    if [[ \${COMP_WORDS[index]} == -- ]]; then
      compopt -o default
      COMPREPLY=()
      return
    fi
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "${names.join(" ")} --help --version" -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  elif [[ " run show wait revoke " == *" \${COMP_WORDS[1]} "* ]]; then
    # Not by compgen -W: it would run what stands in a name as $(command).
    local name
    COMPREPLY=()
    while IFS= read -r name; do
      [[ $name == "$word"* ]] && COMPREPLY+=("$(printf %q "$name")")
    done < <(holdfast list 2>/dev/null | awk 'NR > 1 { print $1 }')
  fi
}
complete -F _holdfast holdfast
`;
}

async function zsh(verbs: Verbs): Promise<string> {
  const names = Object.keys(verbs);
  const described = names.map((verb) => `    ${quoted(`${verb}:${verbs[verb]?.summary ?? ""}`)}`);
  const cases = await Promise.all(
    names.map(async (verb) => `    ${verb}) words=(${(await flagsOf(verbs, verb)).join(" ")}) ;;`),
  );
  return `_holdfast() {
  local -a verbs words
  verbs=(
${described.join("\n")}
  )
  if (( \${words[(I)--]} )); then _normal; return; fi
  if (( CURRENT == 2 )); then _describe command verbs; return; fi
  local verb=\${words[2]}
  local -a flags
  case $verb in
${cases.join("\n").replaceAll("words=", "flags=")}
  esac
  compadd -- $flags
}
compdef _holdfast holdfast
`;
}

async function flagsOf(verbs: Verbs, verb: string): Promise<string[]> {
  const command = await verbs[verb]?.load();
  return [...Object.keys(command?.options ?? {}).map((name) => `--${name}`), "--help"];
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
