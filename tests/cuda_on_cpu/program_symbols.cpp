// Symbols come from the ELF file of the program, segments from the loader, lines from addr2line, which is run at a
// fault only.
#include "tests/cuda_on_cpu/program_symbols.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>

#include <cxxabi.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

namespace decodelab::cuda_on_cpu {
namespace {

constexpr const char* kProgram = "/proc/self/exe";

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

void erase_all(std::string& text, std::string_view part) {
  for (std::size_t at; (at = text.find(part)) != std::string::npos;) {
    text.erase(at, part.size());
  }
}

/// Turns a linker's name into one that a person reads: "attend_splits<float, 1>", "norm_of_block<__half, 8>::scratch".
std::string readable(const std::string& linker_name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(linker_name.c_str(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 ? demangled.get() : linker_name;
  for (const std::string_view part : {"(anonymous namespace)::", "decodelab::", "device::", "cuda_on_cpu::", "void "}) {
    erase_all(name, part);
  }
  // The parameters: from the first parenthesis to its partner, which "::variable" may follow.
  if (const std::size_t open = name.find('('); open != std::string::npos) {
    name.erase(open, name.rfind(')') - open + 1);
  }
  return name;
}

std::vector<char> read_program() {
  std::ifstream file(kProgram, std::ios::binary);
  std::vector<char> content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (content.size() < sizeof(ElfW(Ehdr)) || std::memcmp(content.data(), ELFMAG, SELFMAG) != 0) {
    throw std::runtime_error(fmt::format("{} was expected to be an ELF file that can be read", kProgram));
  }
  return content;
}

template <typename T>
const T* at(const std::vector<char>& content, std::size_t offset) {
  return reinterpret_cast<const T*>(content.data() + offset);
}

}  // namespace

ProgramSymbols::ProgramSymbols() {
  read_segments();
  read_symbols();
}

void ProgramSymbols::read_segments() {
  const auto of_program = [](dl_phdr_info* info, std::size_t, void* self) {
    auto& symbols = *static_cast<ProgramSymbols*>(self);
    symbols.base_ = info->dlpi_addr;
    symbols.thread_local_base_ = number(info->dlpi_tls_data);
    for (const ElfW(Phdr)* segment = info->dlpi_phdr; segment != info->dlpi_phdr + info->dlpi_phnum; ++segment) {
      if (segment->p_type == PT_LOAD) {
        const std::uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        symbols.segments_.push_back({begin, begin + segment->p_memsz, (segment->p_flags & PF_W) != 0});
      }
    }
    return 1;  // The program comes first; the libraries do not matter.
  };
  dl_iterate_phdr(of_program, this);
}

void ProgramSymbols::read_symbols() {
  const std::vector<char> content = read_program();
  const auto* header = at<ElfW(Ehdr)>(content, 0);
  const auto* sections = at<ElfW(Shdr)>(content, header->e_shoff);
  const auto* table = std::find_if(sections, sections + header->e_shnum,
                                   [](const ElfW(Shdr) & section) { return section.sh_type == SHT_SYMTAB; });
  if (table == sections + header->e_shnum) {
    throw std::runtime_error(fmt::format("{} has no symbol table: link it without -s, and do not strip it", kProgram));
  }
  const auto* symbols = at<ElfW(Sym)>(content, table->sh_offset);
  for (std::size_t index = 0; index < table->sh_size / sizeof(ElfW(Sym)); ++index) {
    const ElfW(Sym)& symbol = symbols[index];
    const std::string name = at<char>(content, sections[table->sh_link].sh_offset + symbol.st_name);
    if (symbol.st_shndx == SHN_UNDEF) {
      continue;
    }
    if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) {
      functions_[base_ + symbol.st_value] = name;
    } else if (ELF64_ST_TYPE(symbol.st_info) == STT_TLS) {
      const std::uintptr_t begin = thread_local_base_ + symbol.st_value;
      thread_locals_[begin] = {begin, symbol.st_size, readable(name)};
    }
  }
}

std::string ProgramSymbols::function_at(const void* address) const {
  const auto found = functions_.find(number(address));
  if (found == functions_.end()) {
    throw std::runtime_error(fmt::format("{} is the address of no function of this program", address));
  }
  return readable(found->second);
}

std::vector<std::string> ProgramSymbols::functions(std::string_view name) const {
  std::vector<std::string> found;
  for (const auto& [address, linker_name] : functions_) {
    if (linker_name.find(name) != std::string::npos) {
      std::string readable_name = readable(linker_name);
      // Neither another function that begins so nor a part that the compiler split off.
      if (readable_name == name ||
          (readable_name.starts_with(std::string(name) + "<") && readable_name.ends_with('>'))) {
        found.push_back(std::move(readable_name));
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

const Symbol* ProgramSymbols::thread_local_near(const void* address) const {
  auto after = thread_locals_.upper_bound(number(address));
  if (after == thread_locals_.begin()) {
    return nullptr;
  }
  const Symbol& symbol = std::prev(after)->second;
  // What lies behind the last variable by more than its own size is something else.
  const std::uintptr_t end = after != thread_locals_.end() ? after->first : symbol.begin + 2 * symbol.bytes;
  return number(address) < end ? &symbol : nullptr;
}

bool ProgramSymbols::is_constant(const void* address) const {
  return std::any_of(segments_.begin(), segments_.end(), [&](const Segment& segment) {
    return !segment.writable && number(address) >= segment.begin && number(address) < segment.end;
  });
}

std::uint32_t ProgramSymbols::offset_of(const void* code) const {
  return static_cast<std::uint32_t>(number(code) - base_);
}

const std::string& ProgramSymbols::line_of(std::uint32_t offset) const {
  const auto [found, is_new] = lines_.try_emplace(offset);
  if (is_new) {
    // One less: the return address may belong to the next line.
    const std::string command =
        fmt::format("addr2line -i -e /proc/{}/exe {:#x}", static_cast<long>(getpid()), offset - 1);
    FILE* const output = popen(command.c_str(), "r");  // NOLINT(cert-env33-c,bugprone-command-processor)
    for (char line[4096]; output != nullptr && std::fgets(line, sizeof line, output) != nullptr;) {
      const std::string place(line, std::strcspn(line, " \n"));
      found->second += (found->second.empty() ? "" : " < ") + place.substr(place.starts_with("./") ? 2 : 0);
    }
    if (output == nullptr || pclose(output) != 0) {
      found->second = fmt::format("offset {:#x} of the program (addr2line of binutils would give the line)", offset);
    }
  }
  return found->second;
}

}  // namespace decodelab::cuda_on_cpu
