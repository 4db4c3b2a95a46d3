# Hand-written functions with call frame information.
        .text
        .globl  assembly_pushes
        .type   assembly_pushes, @function
assembly_pushes:
        .cfi_startproc
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushfq
        .cfi_adjust_cfa_offset 8
        subq    $40, %rsp
        .cfi_adjust_cfa_offset 40
        movl    %edi, %ebx
        .cfi_remember_state
        testl   %edi, %edi
        js      1f
        call    leaf
        addl    %ebx, %eax
        addq    $40, %rsp
        .cfi_adjust_cfa_offset -40
        popfq
        .cfi_adjust_cfa_offset -8
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        ret
1:      .cfi_restore_state
        addq    $48, %rsp
        .cfi_adjust_cfa_offset -48
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   assembly_pushes, .-assembly_pushes

# The CFA moves to a register that is neither sp nor fp, and the stack pointer is moved away.
        .globl  assembly_moves_cfa
        .type   assembly_moves_cfa, @function
assembly_moves_cfa:
        .cfi_startproc
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        movq    %rsp, %r12
        .cfi_def_cfa_register %r12
        subq    $100, %rsp
        andq    $-64, %rsp
        call    leaf
        movq    %r12, %rsp
        .cfi_def_cfa_register %rsp
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        ret
        .cfi_endproc
        .size   assembly_moves_cfa, .-assembly_moves_cfa

# The CFA is an expression: the old stack pointer is stored in memory. DW_CFA_def_cfa_expression: breg7+16, deref, plus_uconst 8.
        .globl  assembly_calls
        .type   assembly_calls, @function
assembly_calls:
        .cfi_startproc
        movq    %rsp, %rax
        .cfi_def_cfa_register %rax
        subq    $72, %rsp
        andq    $-32, %rsp
        movq    %rax, 16(%rsp)
        .cfi_escape 0x0f, 5, 0x77, 16, 0x06, 0x23, 8
        movq    %rdi, %rax
        movl    %esi, %edi
        call    *%rax
        movq    16(%rsp), %rsp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   assembly_calls, .-assembly_calls
        .section .note.GNU-stack, "", @progbits
