// The process table in the form that the unwinder needs: one address space, and the files of all modules.
#pragma once

#include "agent/process/process_table.h"
#include "base/code_address.h"
#include "unwind/tables/code_map.h"

namespace flamewire::agent {

class ProcessCode final : public unwind::CodeMap {
public:
    ProcessCode(ProcessTable& processes, ProcessHandle process) : processes_(processes), process_(process) {}
    std::optional<unwind::CodePiece> find(std::uint64_t address) override {
        return processes_.code_at(process_, address);
    }

    std::optional<unwind::Rule> rule_at(const unwind::CodePiece& piece, unwind::Arch arch, CodeAddress pc) override {
        return processes_.code_rule(process_, piece, arch, pc);
    }

private:
    ProcessTable& processes_;
    ProcessHandle process_;
};

// A ModuleHandle is used as a ModuleId, as neither is ever reused.
class ProcessFiles final : public unwind::ModuleFiles {
public:
    explicit ProcessFiles(ProcessTable& processes) : processes_(processes) {}
    Result<elf::ByteSource> open(unwind::ModuleId module) override { return processes_.open_file(module); }

private:
    ProcessTable& processes_;
};

}  // namespace flamewire::agent
