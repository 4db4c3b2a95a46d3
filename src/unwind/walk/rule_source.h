// Where the walk gets its rules: the caches first, then the module's tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unwind/arch/arch.h"
#include "unwind/tables/rule.h"
#include "unwind/tables/rule_cache.h"
#include "unwind/tables/table_work.h"
#include "unwind/walk/open_modules.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::unwind {

class RuleSource {
public:
    RuleSource(ModuleFiles& files, OpenTables open_tables, std::size_t memory_bytes);

    // The rule for code of `arch`; none, and not kept, when the work is spent. Valid until the next call.
    const Rule& rule(const RuleKey& key, Arch arch) {
        const Rule* cached = cache_.find(key);
        return cached != nullptr ? *cached : compile(key, arch);
    }
    // Whether a call or a signal handler can return to `pc`, which is as it was found (ARM: with the Thumb bit). `key` is
    // of that return address. Reads the code once for each key.
    bool may_return_to(const RuleKey& key, Arch arch, std::uint64_t pc);
    // The row behind a rule of kind `row`; null when it is not to be had any more. Valid until the next call.
    const FrameRow* row(const Rule& rule, const RuleKey& key, Arch arch);

    // Whether the pc is in the program's entry function, which is the outermost frame even where no table says so.
    bool is_entry(ModuleId module, std::uint64_t pc);

    OpenModules& modules() { return modules_; }
    TableWork& work() { return work_; }
    void forget(ModuleId module);
    [[nodiscard]] std::uint64_t compiled() const { return compiled_; }
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    const Rule& compile(const RuleKey& key, Arch arch);
    // Compiles without the cache.
    Rule make(const RuleKey& key, const ArchInfo& arch);
    // Sets after_even_call and after_odd_call.
    void look_for_call(const RuleKey& key, const ArchInfo& arch, Rule& rule);

    TableWork work_;
    RuleCache cache_;
    RowTable rows_;
    OpenModules modules_;
    std::uint64_t compiled_ = 0;
    Rule no_rule_;
};

}  // namespace flamewire::unwind
