// Addresses to frames. The one entry to everything in src/symbol: finds a module's file, checks its build-id, builds
// the index lazily and answers batches of lookups. Thread-safe: modules are independent, lookups of one module are
// serialized.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbol/disassembly.h"

namespace flamewire::symbol {

enum class ModuleKind : std::uint8_t { file, kernel, vdso, jit };

// Which ELF file is meant. Equal build-ids are the same module whatever the path.
struct ModuleIdentity {
    ModuleKind kind = ModuleKind::file;
    std::string path;           // as the target sees it
    std::string build_id;       // raw bytes; empty when unknown
    std::string boot_id;        // of the target, for the kernel: the live /proc/kallsyms serves only the same boot
    std::uint64_t size = 0;     // of the file on the target; 0 when unknown (the only check without a build-id)
    std::int64_t mtime_ns = 0;  // of that file
    std::string owner{};        // id of the pairing key of the agent that names it; empty: it has none
};

struct Address {
    std::uint64_t vaddr = 0;      // ELF virtual address; of the kernel relative to _text
    bool return_address = false;  // then vaddr - 1 is looked up
};

// One source-level frame. `function` is demangled. line 0 and file empty: not known.
struct SourceFrame {
    std::uint32_t function = 0;  // index into Resolved::strings; 0 is the empty string
    std::uint32_t file = 0;      // index into Resolved::strings
    std::uint32_t line = 0;
    bool inlined = false;  // this frame was inlined into the next one
};

// Frames of address i are frames[first[i]] … frames[first[i + 1] - 1], innermost first. No frames: nothing is known of
// the address.
struct Resolved {
    std::vector<std::uint32_t> first;  // size: addresses + 1
    std::vector<SourceFrame> frames;
    std::vector<std::string> strings;  // [0] is empty
};

// From worst to best: a better file that is found later replaces a worse one.
enum class Quality : std::uint8_t { none, linker_map, dynamic_symbols, symbols, debug_info };

// Which of the places of docs/symbols.md a file was found at.
enum class FoundBy : std::uint8_t {
    nothing,
    uploaded,  // a person sent it for this module
    given,     // --binary
    path_map,
    sysroot,
    target_path,   // the path as the target sees it
    agent,         // the agent sent it
    debug_tree,    // by build-id below a debug directory
    debug_link,    // named by .gnu_debuglink
    debug_name,    // by the module's name where only debug files are
    kernel_place,  // where distributions put a vmlinux
    this_machine,  // the running kernel's own names, the vDSO of this process
    debuginfod,    // a debuginfod server sent it (the order of these is what kept symbols have on disk)
};

// What is known of a module's symbols, for people: which file, how good, why not better.
struct ModuleReport {
    Quality quality = Quality::none;
    std::string file;                                                  // used; empty when none
    std::string debug_file;                                            // separate debug info, when used
    FoundBy found = FoundBy::nothing, debug_found = FoundBy::nothing;  // of the two
    bool mismatch = false;                                             // a file was there, but of another build
    std::string map_file;                                              // linker map, when used
    std::string problem;             // one sentence ("build-id mismatch: …"); empty when all is well
    std::string remedy;              // what to configure; may be empty
    std::vector<std::string> tried;  // places looked at, in order
    bool kept = false;               // the names are those that the session kept; the files are of where it kept them
};

// The symbol that covers an address; size 0: none is known.
struct FunctionRange {
    std::string name;         // demangled
    std::uint64_t start = 0;  // ELF virtual address; of the kernel relative to _text
    std::uint64_t size = 0;
};

// Machine code of a module. Without bytes `problem` says why, in one sentence.
struct ModuleCode {
    std::string bytes;  // may be fewer than asked for, at the end of a section
    std::uint64_t address = 0;
    std::uint16_t machine = 0;
    bool big_endian = false;
    CodeKind begins = CodeKind::code;
    std::vector<CodeMark> marks;
    std::string file;             // that they are from
    std::string problem, remedy;  // remedy: what to configure; may be empty

    [[nodiscard]] CodeBytes view() const { return {as_bytes_view(bytes), address, machine, big_endian, begins, marks}; }
};

struct PathMap {
    std::string from, to;
};

// A linker map for the module of that name or path; without one for the module that the map's own name or its OUTPUT
// says.
struct MapFile {
    std::string module, file;
};

struct Config {
    std::vector<std::string> binaries;  // --binary: unstripped files, matched by build-id, else by file name
    std::string sysroot;
    std::vector<PathMap> path_maps;
    std::vector<MapFile> maps;         // --map: for modules that have no symbol table
    std::string module_directory;      // files that agents sent, by fetched_path(); empty: none
    std::string upload_directory;      // files that people sent, named in the same way; empty: none
    std::string debuginfod_directory;  // what debuginfod servers sent (debuginfod.h); empty: none
    std::vector<std::string> debug_directories = {"/usr/lib/debug"};
    bool inlines =
        true;  // else one frame an address: the function that the linker knows, at the line of its outermost call
    bool demangle = true;  // else names as the linker has them, for comparing with other tools
};

// The name of a module's file among those that were sent: its build-id, else a hash of path, size and time.
std::string fetched_name(const ModuleIdentity& module);
// Where among those that agents sent: a build-id is the word of who sends the file, so the files of each pairing key are
// for what that key's agents recorded. Empty: the owner is no key's id.
std::string fetched_path(const std::string& folder, const ModuleIdentity& module);

class Symbolizer {
public:
    explicit Symbolizer(Config config);
    ~Symbolizer();
    Symbolizer(const Symbolizer&) = delete;
    Symbolizer& operator=(const Symbolizer&) = delete;

    // Forgets what was found under the old configuration. Results of earlier resolve() calls stay valid values.
    void set_config(Config config);
    [[nodiscard]] Config config() const;
    // Looks for the files of one module anew.
    void forget(const ModuleIdentity& module);
    // Rises whenever answers may have become better. A caller that has older answers asks again.
    [[nodiscard]] std::uint64_t generation() const;

    // Answers in the order of `addresses`. Never fails: what is not known has no frames.
    Resolved resolve(const ModuleIdentity& module, std::span<const Address> addresses);
    ModuleReport report(const ModuleIdentity& module);
    // The functions that the addresses are in.
    std::vector<FunctionRange> functions(const ModuleIdentity& module, std::span<const Address> addresses);
    // Up to `size` bytes of code at `start`, at most 16 MiB.
    ModuleCode code(const ModuleIdentity& module, std::uint64_t start, std::uint64_t size);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::symbol
